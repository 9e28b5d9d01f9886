package l7

import (
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/l7/http1"
	"github.com/weirproxy/weir/l7/route"
	"github.com/weirproxy/weir/l7/upstream"
)

const (
	eventsMax   = 256       // of one epoll batch
	napMilli    = 2         // tests/bench/results/nap.txt
	requestRead = 64 << 10  // bytes of one read from a client
	answerRead  = 128 << 10 // and from an endpoint: tests/bench/results/readsize.txt
)

// handler is what owns a descriptor in a worker's epoll set.
type handler interface{ event(events uint32) }

// slot is the entry of one descriptor. Events of a descriptor that was closed and
// reused within one batch carry the old generation and are dropped.
type slot struct {
	gen uint32
	h   handler
}

// Worker is one event loop. All its fields but counters, wake and inbox belong to
// its goroutine.
type Worker struct {
	server *Server
	id     int
	cpu    int // pinned to, -1: not pinned

	epfd, wakefd int32
	slots        []slot // by descriptor
	listeners    []*listener
	events       [eventsMax]event

	epoch  time.Time
	now    int64 // ms since epoch, read once a turn
	micro  int64 // µs since epoch, read once a turn
	date   dateLine
	wheel  wheel
	random *rand.Rand

	buffers  buffers
	request  http1.Request
	response http1.Response
	up, down []byte                   // scratch for reads from clients and from endpoints
	head     []byte                   // scratch for heads that are written
	tail     []byte                   // scratch for last chunks and trailers
	chunk    [http1.ChunkHeadMax]byte // scratch for chunk heads
	iov      [4]unix.Iovec
	accepted unix.RawSockaddrAny

	clusters  *upstream.Clusters
	probes    map[*upstream.Peer]*probe
	runnable  []*client // to be served before the next event
	graveyard []*exchange
	closed    []*client
	dropped   []*backend
	lost      bool // some peer with connections is gone: look at the end of the turn
	spare     struct {
		exchanges []*exchange
		clients   []*client
		backends  []*backend
	}
	clients      int // open connections
	backends     int // open connections
	active       int // exchanges
	draining     bool
	drainEnd     int64 // ms; then open connections are closed
	killed       bool
	trimAt       int64
	seen         *route.Table
	log          logBuffer
	local        tally
	refusedSince bool // local.refused or local.unmatched changed this turn

	counters counters
	wakeUp   atomic.Bool // a wake-up is on its way
}

// newWorker makes the descriptors of a worker; run closes them.
func newWorker(s *Server, id int) (*Worker, error) {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	wakefd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(epfd)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	var seed [32]byte
	crand.Read(seed[:])
	w := &Worker{
		server: s,
		id:     id,
		cpu:    -1,
		epfd:   int32(epfd),
		wakefd: int32(wakefd),
		epoch:  time.Now(),
		up:     make([]byte, requestRead),
		down:   make([]byte, answerRead),
		head:   make([]byte, 0, 8<<10),
		random: rand.New(rand.NewChaCha8(seed)),
	}
	w.local.refused = make([]uint64, len(refusalNames))
	w.counters.refused = make([]atomic.Uint64, len(refusalNames))
	w.clusters = upstream.NewClusters(id, w.random)
	w.probes = make(map[*upstream.Peer]*probe)
	w.wheel.init(0)
	w.attach(w.wakefd, wakeHandler{w})
	sysEpollAdd(w.epfd, w.wakefd, w.slots[w.wakefd].gen, unix.EPOLLIN)
	return w, nil
}

// attach makes h the owner of fd's events and returns the generation.
func (w *Worker) attach(fd int32, h handler) uint32 {
	for int(fd) >= len(w.slots) {
		w.slots = append(w.slots, make([]slot, max(256, len(w.slots)))...)
	}
	s := &w.slots[fd]
	s.h = h
	return s.gen
}

func (w *Worker) detach(fd int32) {
	s := &w.slots[fd]
	s.h = nil
	s.gen++
}

// run is the event loop. It returns when the worker was killed, or drains and has
// no connection left.
func (w *Worker) run() error {
	runtime.LockOSThread() // never unlocked: the thread ends with the loop, pinned as it is
	w.pin()
	defer w.closeAll()
	w.tick()
	w.wheel.tick = w.now / tickMilli
	w.balance()
	for {
		n, err := w.wait()
		if err != nil {
			return err
		}
		w.tick()
		w.dispatch(w.events[:n])
		w.wheel.advance(w.now)
		w.serveRunnable()
		w.endTurn(n)
		if w.done() {
			return nil
		}
	}
}

// wait returns the number of events that came, or 0 if a timer is due. A busy loop
// only naps; when nothing comes for a while it lets go of its P and sleeps.
func (w *Worker) wait() (int, error) {
	t := w.timeout()
	nap := napMilli
	if t >= 0 {
		nap = min(t, nap)
	}
	n, e := sysEpollNap(w.epfd, w.events[:], nap)
	if n == 0 && e == 0 && t != nap {
		w.log.flush(w)
		if t > 0 {
			t -= nap
		}
		n, e = sysEpollWait(w.epfd, w.events[:], t)
	}
	if e != 0 && e != unix.EINTR {
		return 0, fmt.Errorf("worker %d: epoll_wait: %w", w.id, e)
	}
	return n, nil
}

// timeout is how long the loop may sleep, ms.
func (w *Worker) timeout() int {
	t := w.wheel.wait(w.now)
	before := func(at int64) {
		if left := int(max(at-w.now, 0)); t < 0 || left < t {
			t = left
		}
	}
	if w.draining {
		before(w.drainEnd)
		if w.clients == 0 {
			before(w.now + 20) // look whether the other workers are done
		}
	}
	for _, l := range w.listeners {
		if l.retryAt != 0 {
			before(l.retryAt)
		}
	}
	return t
}

func (w *Worker) tick() {
	d := time.Since(w.epoch)
	w.micro = d.Microseconds()
	w.now = w.micro / 1000
}

// dispatch hands out one batch. Idle upstream connections that were closed go
// first, so that no request of this batch is written to one of them.
func (w *Worker) dispatch(batch []event) {
	for i := range batch {
		ev := &batch[i]
		if ev.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) == 0 {
			continue
		}
		if s := &w.slots[ev.Fd]; s.gen == uint32(ev.Pad) {
			if b, ok := s.h.(*backend); ok && b.x == nil {
				b.event(ev.Events)
			}
		}
	}
	for i := range batch {
		ev := &batch[i]
		if s := &w.slots[ev.Fd]; s.gen == uint32(ev.Pad) && s.h != nil {
			s.h.event(ev.Events)
			if len(w.runnable) > 0 {
				w.serveRunnable()
			}
		}
	}
}

// serveRunnable continues clients whose exchange ended while an event of the
// upstream side was handled.
func (w *Worker) serveRunnable() {
	for len(w.runnable) > 0 {
		c := w.runnable[len(w.runnable)-1]
		w.runnable = w.runnable[:len(w.runnable)-1]
		c.queued = false
		c.serve()
	}
}

func (w *Worker) endTurn(events int) {
	if w.lost {
		w.lost = false
		w.abandon()
		w.serveRunnable()
	}
	for i, x := range w.graveyard {
		w.graveyard[i] = nil
		w.recycle(x)
	}
	w.graveyard = w.graveyard[:0]
	for i, c := range w.closed {
		w.closed[i] = nil
		if len(w.spare.clients) < 1024 {
			w.spare.clients = append(w.spare.clients, c)
		}
	}
	w.closed = w.closed[:0]
	for i, b := range w.dropped {
		w.dropped[i] = nil
		if len(w.spare.backends) < 1024 {
			w.spare.backends = append(w.spare.backends, b)
		}
	}
	w.dropped = w.dropped[:0]
	if w.now >= w.trimAt {
		w.trimAt = w.now + 5000
		w.buffers.trim()
	}
	if t := w.server.table.Load(); t != w.seen {
		w.follow(t)
	}
	w.balance()
	w.local.turns++
	w.local.events += uint64(events)
	w.publish()
	w.log.flushIfFull(w)
}

// done reports whether the loop may end.
func (w *Worker) done() bool {
	if w.killed {
		return true
	}
	if !w.draining {
		return false
	}
	return w.clients == 0 && w.server.drainOver() || w.now >= w.drainEnd
}

// closeAll ends every connection of the worker.
func (w *Worker) closeAll() {
	for fd := range w.slots {
		if c, ok := w.slots[fd].h.(*client); ok {
			c.close() // takes its exchange with it
		}
	}
	for fd := range w.slots {
		switch h := w.slots[fd].h.(type) {
		case *backend:
			h.close()
		case *probe:
			h.end(true)
		}
	}
	w.endTurn(0)
	w.log.flush(w)
	sysClose(w.epfd)
}

// pin binds the loop's thread to its CPU; without permission it runs unpinned.
func (w *Worker) pin() {
	cpus := w.server.config.CPUs
	if len(cpus) == 0 {
		return
	}
	cpu := cpus[w.id%len(cpus)]
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		w.server.config.Logger.Warn("worker is not pinned", "worker", w.id, "cpu", cpu, "err", err)
		return
	}
	w.cpu = cpu
	w.counters.cpu.Store(int64(cpu))
}

// notify wakes the loop. Any goroutine may call it.
func (w *Worker) notify() {
	if w.wakeUp.Swap(true) {
		return
	}
	one := [8]byte{1}
	unix.Write(int(w.wakefd), one[:])
}

// wakeHandler receives notify.
type wakeHandler struct{ w *Worker }

func (h wakeHandler) event(uint32) {
	w := h.w
	var count [8]byte
	sysRead(w.wakefd, count[:])
	w.wakeUp.Store(false)
	if w.server.killed.Load() {
		w.killed = true
		return
	}
	if w.server.draining.Load() && !w.draining {
		w.startDrain()
	}
	w.clusters.Follow(w.peerChanged)
}
