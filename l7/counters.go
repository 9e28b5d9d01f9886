package l7

import (
	"sync/atomic"
	"time"
)

// tally is what a worker counts by itself, without atomics, between two turns.
type tally struct {
	accepted, requests, turns, events uint64
	bytesIn, bytesOut                 uint64
	logDropped, acceptPaused, evicted uint64
	refused                           []uint64 // by refusalNames
	unmatched                         [6]uint64
}

// counters is the copy of a worker's tally that others may read. A worker writes
// it once a turn.
type counters struct {
	accepted, requests, turns, events    atomic.Uint64
	bytesIn, bytesOut                    atomic.Uint64
	logDropped, acceptPaused, evicted    atomic.Uint64
	connections, active                  atomic.Uint64
	upstreamOpen, upstreamIdle, buffered atomic.Uint64
	lastTurn, cpu                        atomic.Int64
	refused                              []atomic.Uint64 // by refusalNames
	unmatched                            [6]atomic.Uint64
}

// publish copies what changed.
func (w *Worker) publish() {
	l, c := &w.local, &w.counters
	put := func(to *atomic.Uint64, v uint64) {
		if to.Load() != v {
			to.Store(v)
		}
	}
	put(&c.accepted, l.accepted)
	put(&c.requests, l.requests)
	put(&c.turns, l.turns)
	put(&c.events, l.events)
	put(&c.bytesIn, l.bytesIn)
	put(&c.bytesOut, l.bytesOut)
	put(&c.logDropped, l.logDropped)
	put(&c.acceptPaused, l.acceptPaused)
	put(&c.evicted, l.evicted)
	put(&c.connections, uint64(w.clients))
	put(&c.active, uint64(w.active))
	put(&c.upstreamOpen, uint64(w.backends))
	put(&c.upstreamIdle, uint64(w.clusters.Idle))
	put(&c.buffered, w.buffers.held+uint64(len(w.up)+len(w.down)+cap(w.head)))
	w.load.tell(w)
	if now := w.now; now-c.lastTurn.Load() >= 1 {
		c.lastTurn.Store(now)
	}
	if w.refusedSince {
		w.refusedSince = false
		for i, v := range l.refused {
			put(&c.refused[i], v)
		}
		for i, v := range l.unmatched {
			put(&c.unmatched[i], v)
		}
	}
}

// stats reads a worker's counters from any goroutine.
func (w *Worker) stats() WorkerStats {
	c := &w.counters
	return WorkerStats{
		CPU:           int(c.cpu.Load()),
		Connections:   c.connections.Load(),
		Active:        c.active.Load(),
		UpstreamOpen:  c.upstreamOpen.Load(),
		UpstreamIdle:  c.upstreamIdle.Load(),
		Accepted:      c.accepted.Load(),
		Requests:      c.requests.Load(),
		Turns:         c.turns.Load(),
		Events:        c.events.Load(),
		BytesIn:       c.bytesIn.Load(),
		BytesOut:      c.bytesOut.Load(),
		LogDropped:    c.logDropped.Load(),
		AcceptPaused:  c.acceptPaused.Load(),
		Evicted:       c.evicted.Load(),
		BufferBytes:   c.buffered.Load(),
		TakeOver:      durations(&w.takeover.delays),
		LastTurnMilli: time.Now().UnixMilli() - (time.Since(w.epoch).Milliseconds() - c.lastTurn.Load()),
	}
}
