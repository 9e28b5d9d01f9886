package l7

import (
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/l7/route"
)

// Measure makes each worker count how long after seen it has taken over what is
// in force now. It is called once a table or endpoints have been replaced, before
// SetTable or EndpointsChanged tell the workers. Of changes that a worker takes
// over together only the oldest counts. Any goroutine may call it.
func (s *Server) Measure(seen time.Time) {
	for _, w := range s.workers {
		// Never 0, and not before the epoch: a change is as old as its worker at most.
		at := max(seen.Sub(w.epoch).Microseconds(), 1)
		for {
			oldest := w.takeover.oldest.Load()
			if oldest != 0 && oldest <= at || w.takeover.oldest.CompareAndSwap(oldest, at) {
				break
			}
		}
	}
}

// takeover measures how fast a worker takes over changes.
type takeover struct {
	oldest atomic.Int64 // µs since epoch that the oldest change not taken over was seen; 0 none
	delays route.Histogram
}

// begin is called before the worker looks at what is in force, end after it has
// taken it over: the next pick is from the new endpoints.
func (t *takeover) begin() (seen int64) { return t.oldest.Swap(0) }

func (t *takeover) end(seen int64, epoch time.Time) {
	if seen != 0 {
		t.delays.Observe(uint32(min(max(time.Since(epoch).Microseconds()-seen, 0), 1<<32-1)))
	}
}

// Durations are counts of durations by route.LatencyBuckets; the last count is of
// those above.
type Durations struct {
	SumMicros uint64
	Counts    [len(route.LatencyBuckets) + 1]uint64
}

func durations(h *route.Histogram) Durations {
	d := Durations{SumMicros: h.Sum.Load()}
	for i := range d.Counts {
		d.Counts[i] = h.Count[i].Load()
	}
	return d
}
