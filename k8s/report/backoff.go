package report

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// backoff returns the time before attempt n, from 1: first, doubled each time up
// to most, less up to a quarter, so that many agents don't come at once.
func backoff(n int, first, most time.Duration) time.Duration {
	d := most
	if n < 32 && first<<(n-1) < most {
		d = first << (n - 1)
	}
	return d - rand.N(d/4+1)
}

// pause waits for d, less if ctx ends first; it reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// gate stops all writers for a while if the API server can't take anything.
type gate struct {
	mu       sync.Mutex
	failures int
	until    time.Time
}

// The bounds of the time that a gate stays shut.
const (
	gateFirst = time.Second
	gateMost  = 30 * time.Second
)

// wait blocks while the gate is shut; false if ctx ended.
func (g *gate) wait(ctx context.Context) bool {
	for {
		g.mu.Lock()
		d := time.Until(g.until)
		g.mu.Unlock()
		if d <= 0 {
			return ctx.Err() == nil
		}
		if !pause(ctx, d) {
			return false
		}
	}
}

// shut closes the gate after err, which is general.
func (g *gate) shut(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Now().Before(g.until) {
		return // another request of the same failure
	}
	g.failures++
	d := backoff(g.failures, gateFirst, gateMost)
	if s, ok := apierrors.SuggestsClientDelay(err); ok {
		d = max(d, min(time.Duration(s)*time.Second, gateMost))
	}
	g.until = time.Now().Add(d)
}

// open tells that a request got through.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures = 0
}
