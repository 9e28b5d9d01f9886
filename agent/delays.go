package agent

import (
	"time"

	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/l7/route"
)

// delays are the times from the first event of a change to its being in force.
type delays struct{ endpoints, objects route.Histogram }

// observe counts c, which is in force since at. One goroutine at a time calls it.
func (d *delays) observe(c k8s.Change, at time.Time) {
	h := &d.objects
	if c.Objects == nil {
		h = &d.endpoints
	}
	h.Observe(uint32(min(max(at.Sub(c.Seen).Microseconds(), 0), 1<<32-1)))
}
