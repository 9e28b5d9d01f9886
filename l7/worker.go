package l7

import (
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
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

// Worker is one event loop. All its fields but counters, takeover and wakeUp belong
// to its goroutine.
type Worker struct {
	server *Server
	id     int

	epfd, wakefd int32
	slots        []slot // by descriptor
	listeners    []*listener
	events       [eventsMax]event

	epoch  time.Time
	now    int64     // ms since epoch, read once a turn
	micro  int64     // µs since epoch, read once a turn
	wall   time.Time // the wall clock at epoch, as of wallAt
	wallAt int64     // ms
	date   dateLine
	wheel  wheel
	random *rand.Rand

	buffers  buffers
	request  http1.Request
	response http1.Response
	up, down []byte                   // scratch for reads from clients and from endpoints
	head     []byte                   // scratch for heads that are written
	tail     []byte                   // scratch for last chunks and trailers
	joined   []byte                   // scratch for a field of several lines
	chunk    [http1.ChunkHeadMax]byte // scratch for chunk heads
	iov      [4]unix.Iovec
	accepted unix.RawSockaddrAny

	clusters  *upstream.Clusters
	idle      idleList
	probes    map[*upstream.Peer]*probe
	runnable  []*client // to be served before the next event
	yielded   []*client // to be resumed in the next turn
	used      int       // bytes that the event being handled has cost
	graveyard []*exchange
	closed    []*client
	dropped   []*backend
	lost      bool // some peer with connections is gone: look at the end of the turn
	spare     struct {
		exchanges []*exchange
		clients   []*client
		backends  []*backend
		yielded   []*client
	}
	clients      int // open connections
	backends     int // open connections
	active       int // exchanges
	draining     bool
	drainEnd     int64 // ms; then open connections are closed
	killed       bool
	full         bool // holds as many connections as it may
	trimAt       int64
	seen         *route.Table
	log          logBuffer
	local        tally
	refusedSince bool // local.refused or local.unmatched changed this turn

	counters counters
	takeover takeover
	load     loadTeller
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
		epfd:   int32(epfd),
		wakefd: int32(wakefd),
		epoch:  time.Now(),
		load:   newLoadTeller(s.config, id),
		up:     make([]byte, requestRead),
		down:   make([]byte, answerRead),
		head:   make([]byte, 0, 8<<10),
		random: rand.New(rand.NewChaCha8(seed)),
	}
	w.counters.cpu.Store(-1)
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
	seen := w.takeover.begin()
	w.clusters.Follow(w.peerChanged)
	w.takeover.end(seen, w.epoch)
	w.acceptNow()
}
