package l7

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// What a worker tells of itself in WorkerLoad.State.
const (
	LoadIdle = 1 << iota // it sleeps until something comes: an old Tick means nothing
	LoadFull             // it takes no connection now
)

// WorkerLoad is what a worker tells others of its load, in a cache line of its own:
// 64 bytes, which may be mapped memory that others read. The worker alone writes it,
// with plain atomic stores, and only what changed.
type WorkerLoad struct {
	Tick        atomic.Uint64 // CLOCK_MONOTONIC of the last turn, ns
	Accepted    atomic.Uint64 // connections so far
	Connections atomic.Uint32 // open
	Active      atomic.Uint32 // exchanges that run
	State       atomic.Uint32 // LoadIdle, LoadFull
	_           [36]byte
}

// loadTeller writes a worker's load; the zero value tells nothing.
type loadTeller struct {
	to    *WorkerLoad
	start uint64 // CLOCK_MONOTONIC at the worker's epoch, ns
}

func newLoadTeller(c Config, id int) loadTeller {
	if len(c.Loads) == 0 {
		return loadTeller{}
	}
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // fails for unknown clocks only
	return loadTeller{to: &c.Loads[id], start: uint64(now.Nano())}
}

func (t *loadTeller) tell(w *Worker) {
	if t.to == nil {
		return
	}
	put := func(to *atomic.Uint32, v uint32) {
		if to.Load() != v {
			to.Store(v)
		}
	}
	t.to.Tick.Store(t.start + uint64(w.micro)*1000)
	if t.to.Accepted.Load() != w.local.accepted {
		t.to.Accepted.Store(w.local.accepted)
	}
	put(&t.to.Connections, uint32(w.clients))
	put(&t.to.Active, uint32(w.active))
	put(&t.to.State, t.full(w))
}

func (t *loadTeller) full(w *Worker) uint32 {
	for _, l := range w.listeners {
		if !l.added {
			return LoadFull
		}
	}
	return 0
}

// asleep tells that the worker is about to sleep, or has just woken. Its tick is
// fresh before it is taken for awake.
func (t *loadTeller) asleep(on bool, w *Worker) {
	switch {
	case t.to == nil:
	case on:
		t.to.State.Store(t.to.State.Load() | LoadIdle)
	default:
		w.tick()
		t.to.Tick.Store(t.start + uint64(w.micro)*1000)
		t.to.State.Store(t.to.State.Load() &^ LoadIdle)
	}
}
