package report

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// The times of the end.
const (
	// othersLeave is how long the leader waits for the others to say that they
	// leave as well, when the whole installation ends.
	othersLeave = 5 * time.Second
	othersLook  = 500 * time.Millisecond
	// farewellTimeout is how long statuses are removed. It is part of the time that
	// the agent has to end.
	farewellTimeout = 20 * time.Second
	farewellWriters = 16
)

// lastOne reports whether no other agent is left that serves.
func (r *Reporter) lastOne(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, othersLeave)
	defer cancel()
	for {
		if r.neighbours.alone(ctx) {
			return true
		}
		if !pause(ctx, othersLook) {
			return false
		}
	}
}

// farewell removes what this installation wrote into the status of the admitted
// Ingresses. It does not keep to the rate: nobody serves any more.
func (s *statuses) farewell(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, farewellTimeout)
	defer cancel()
	s.mu.Lock()
	admitted := s.admitted
	s.mu.Unlock()
	keys := make(chan types.NamespacedName)
	var all sync.WaitGroup
	for range farewellWriters {
		all.Go(func() {
			for key := range keys {
				s.part(ctx, key)
			}
		})
	}
	left := len(admitted)
	for key := range admitted {
		if ctx.Err() != nil {
			break
		}
		left--
		if status, _, ok := s.view.Ingress(key); ok && len(status.Ingress) > 0 {
			keys <- key
		}
	}
	close(keys)
	all.Wait()
	s.config.Logger.Info("the last agent ends: its addresses are removed from the status of Ingresses",
		"removed", s.stats.statusRemovals.Load(), "not_reached", left)
}

// part clears the status of key, twice if it is changed meanwhile.
func (s *statuses) part(ctx context.Context, key types.NamespacedName) {
	err := s.clear(ctx, key)
	if outdated(err) {
		s.stats.statusConflicts.Add(1)
		err = s.clear(ctx, key)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		s.stats.statusErrors.Add(1)
		s.log.failedIn(whatRemove, key.Namespace, err)
	}
}
