package l7

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/l7/http1"
	"github.com/weirproxy/weir/l7/route"
)

// Server is a set of workers and their listeners.
type Server struct {
	config         Config
	requestLimits  http1.Limits
	responseLimits http1.Limits
	clientsMax     int // client connections of one worker
	descriptorsMax int // open descriptors of one worker at which it stops accepting

	table    atomic.Pointer[route.Table]
	swaps    atomic.Uint64
	logLost  atomic.Uint64
	draining atomic.Bool
	killed   atomic.Bool

	waking sync.RWMutex // held for reading while a worker is woken
	ended  bool         // guarded by waking: the descriptors to wake workers are closed

	workers   []*Worker
	full      []atomic.Bool // by worker: at the fountain's mark
	sockets   []int         // listening; owned: Run closes them
	addresses []netip.AddrPort
	logLines  chan []byte
	logSpare  chan []byte
}

// New binds the addresses. The sockets accept from the kernel's point of view
// at once; requests are read when Run starts. A Server that never runs is
// released by Close.
func New(c Config) (*Server, error) {
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	s := &Server{
		config:         c,
		requestLimits:  http1.Limits{HeadBytes: c.Limits.HeadBytesMax, LineBytes: c.Limits.LineBytesMax, Fields: c.Limits.FieldsMax},
		responseLimits: http1.Limits{HeadBytes: c.Limits.ResponseHeadBytesMax, LineBytes: c.Limits.ResponseHeadBytesMax, Fields: responseFieldsMax},
		full:           make([]atomic.Bool, c.Workers),
		logLines:       make(chan []byte, logBacklog),
		logSpare:       make(chan []byte, logBacklog),
	}
	s.limitDescriptors()
	for i := range c.Workers {
		w, err := newWorker(s, i)
		if err != nil {
			s.Close()
			return nil, err
		}
		w.log.on = c.LogFormat != LogOff
		s.workers = append(s.workers, w)
	}
	if err := s.bind(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// responseFieldsMax bounds the fields of an answer's head.
const responseFieldsMax = 256

// descriptorsKept is the least number of descriptors that are kept for everything
// but connections: listeners, epoll sets, files, the admin server.
const descriptorsKept = 32

// limitDescriptors divides RLIMIT_NOFILE: a tenth is kept for everything else.
// Half of the rest is for clients, so that each that is held can be served by an
// endpoint.
func (s *Server) limitDescriptors() {
	files := uint64(1024)
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) == nil {
		files = r.Cur
	}
	files = min(files, 1<<24)
	rest := int(files) - max(int(files)/10, descriptorsKept)
	s.descriptorsMax = max(rest/s.config.Workers, 4)
	s.clientsMax = s.descriptorsMax / 2
	if m := s.config.Limits.ConnectionsMax; m > 0 {
		s.clientsMax = max(m/s.config.Workers, 1)
	}
}

// bind opens the listening sockets and gives each to its workers.
func (s *Server) bind() error {
	own := s.config.Accept == AcceptHash
	for _, addr := range s.config.Addresses {
		for i, w := range s.workers {
			if i > 0 && !own {
				w.addListener(s.sockets[len(s.sockets)-1], addr)
				continue
			}
			fd, bound, err := listen(addr, own)
			if err != nil {
				return err
			}
			s.sockets = append(s.sockets, fd)
			addr = bound // the other workers use the port that the kernel chose
			w.addListener(fd, addr)
		}
		s.addresses = append(s.addresses, addr)
	}
	return nil
}

// Close releases a Server whose Run was not called.
func (s *Server) Close() {
	for _, w := range s.workers {
		sysClose(w.wakefd)
		sysClose(w.epfd)
	}
	for _, fd := range s.sockets {
		unix.Close(fd)
	}
	s.workers, s.sockets = nil, nil
}

// Addresses returns the bound addresses in the order of Config.Addresses, with
// the ports that the kernel chose.
func (s *Server) Addresses() []netip.AddrPort { return s.addresses }

// Listener is a bound address and its listening sockets: one, or with AcceptHash
// one of each worker, by worker. The Server owns the sockets.
type Listener struct {
	Addr    netip.AddrPort
	Sockets []int
}

// Listeners returns the listeners in the order of Config.Addresses. Their sockets
// are valid until Run returns.
func (s *Server) Listeners() []Listener {
	each := 1
	if s.config.Accept == AcceptHash {
		each = len(s.workers)
	}
	out := make([]Listener, len(s.addresses))
	for i, addr := range s.addresses {
		out[i] = Listener{Addr: addr, Sockets: s.sockets[i*each : (i+1)*each]}
	}
	return out
}

// Table returns the table in force, or nil before the first SetTable.
func (s *Server) Table() *route.Table { return s.table.Load() }

// SetTable puts t in force for every request that starts from now on. Until the
// first call every request is answered 503. Any goroutine may call it.
func (s *Server) SetTable(t *route.Table) {
	s.table.Store(t)
	s.swaps.Add(1)
	s.notify()
}

// EndpointsChanged tells the workers that the endpoints of some cluster were
// replaced: they close idle connections to endpoints that take no more requests
// and give up tries on those that disappeared. Any goroutine may call it, after
// Cluster.SetEndpoints.
func (s *Server) EndpointsChanged() { s.notify() }

// notify wakes all workers. After Run it does nothing.
func (s *Server) notify() {
	s.waking.RLock()
	defer s.waking.RUnlock()
	if s.ended {
		return
	}
	for _, w := range s.workers {
		w.notify()
	}
}

// Run serves until ctx ends, then drains: it keeps accepting, answers with
// "Connection: close", closes idle connections, and returns when no connection
// is left or DrainTimeout has passed. It returns an error only if the event loop
// of a worker breaks; the others drain then. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	var workers, watcher sync.WaitGroup
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		s.writeLog()
	}()
	broken, stop := context.WithCancel(ctx)
	watcher.Go(func() {
		<-broken.Done()
		s.draining.Store(true)
		s.notify()
	})
	errs := make([]error, len(s.workers))
	for i, w := range s.workers {
		workers.Go(func() {
			errs[i] = w.run()
			s.silence(i)
			if errs[i] != nil {
				stop()
			}
		})
	}
	workers.Wait()
	stop()
	watcher.Wait()
	close(s.logLines)
	s.awaitLog(logged)
	s.waking.Lock()
	s.ended = true
	for _, w := range s.workers {
		sysClose(w.wakefd)
	}
	s.waking.Unlock()
	for _, fd := range s.sockets {
		unix.Close(fd)
	}
	return errors.Join(errs...)
}

// silence ends the listening of a worker that accepts no more, on sockets of its
// own: the kernel then gives new connections to the others. It closes nothing.
func (s *Server) silence(worker int) {
	if s.config.Accept != AcceptHash {
		return
	}
	for _, l := range s.Listeners() {
		if err := unix.Shutdown(l.Sockets[worker], unix.SHUT_RD); err != nil {
			s.config.Logger.Warn("a worker that accepts no more still listens", "worker", worker, "listener", l.Addr, "err", err)
		}
	}
}

// Kill ends a drain at once: open connections are closed. Without a drain before
// it, it ends the server too.
func (s *Server) Kill() {
	s.killed.Store(true)
	s.notify()
}

// Stats returns the counters. Any goroutine may call it.
func (s *Server) Stats() Stats {
	st := Stats{
		TableSwaps: s.swaps.Load(),
		Draining:   s.draining.Load(),
		LogLost:    s.logLost.Load(),
		Refused:    make(map[string]uint64, len(refusalNames)),
	}
	if t := s.table.Load(); t != nil {
		st.TableVersion = t.Version
	}
	for _, w := range s.workers {
		st.Workers = append(st.Workers, w.stats())
		for i, name := range refusalNames {
			st.Refused[name] += w.counters.refused[i].Load()
		}
		for i := range st.Unmatched {
			st.Unmatched[i] += w.counters.unmatched[i].Load()
		}
	}
	return st
}
