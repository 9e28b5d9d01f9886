package watch

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// feedState is what the store knows of one feed.
type feedState struct {
	synced  bool      // all there is was read once
	settled bool      // or, of an optional kind, the server said why not
	live    bool      // a watch runs
	heard   time.Time // when the feed was in step last: a sync, an event, a bookmark
	failure error     // the last, nil if it works
}

// open adds a feed, close removes one.
func (s *store) open(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feeds[f] = &feedState{}
}

// close forgets a feed and what its scope has: f is the only one of its scope.
func (s *store) close(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.feeds[f]
	delete(s.feeds, f)
	if state != nil && state.failure != nil {
		s.touch(s.now()) // its notice goes
	}
	for k := range s.tables[f.kind] {
		if f.scope.has(k) {
			s.unset(f.kind, k, s.now())
		}
	}
}

// live notes that a watch of f runs.
func (s *store) live(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.feeds[f]; state != nil {
		state.live = true
	}
}

// lost notes that the watch of f ended.
func (s *store) lost(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.feeds[f]; state != nil {
		state.live = false
	}
}

// heard notes that f was in step at time at.
func (s *store) heard(f *feed, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.feeds[f]; state != nil {
		state.heard = at
	}
}

// event counts an event of f.
func (s *store) event(f *feed, at time.Time) {
	c := s.stats[f.kind]
	c.events++
	c.lastEvent = at
	if state := s.feeds[f]; state != nil {
		state.heard = at
	}
}

// synced notes that all there is in the scope of f was read.
func (s *store) synced(f *feed, at time.Time) {
	s.stats[f.kind].syncs++
	if state := s.feeds[f]; state != nil {
		state.synced, state.settled, state.heard = true, true, at
	}
}

// failed notes that a turn of f ended with err.
func (s *store) failed(f *feed, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats[f.kind].errors++
	state := s.feeds[f]
	if state == nil {
		return
	}
	said := noticed(f, state.failure)
	state.failure = err
	if said != noticed(f, err) {
		s.touch(s.now())
	}
	// An answer of the server, if only an error, may be all that there will be. But the
	// ConfigMap may hold what protects every route: without an answer about it nothing
	// is served yet, unless it is known that there will be none.
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && f.kind.optional && (f.kind != configMapKind || apierrors.IsForbidden(err)) {
		state.settled = true
	}
	s.wake()
}

// works notes that f works, and returns what it failed of before, if it did.
func (s *store) works(f *feed) (before error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.feeds[f]
	if state == nil || state.failure == nil {
		return nil
	}
	before, state.failure = state.failure, nil
	if noticed(f, before) {
		s.touch(s.now())
		s.wake()
	}
	return before
}

// ready reports whether every feed has brought all there is.
func (s *store) ready() bool {
	if s.recounted {
		return false // some feeds are still to be opened
	}
	for _, state := range s.feeds {
		if !state.settled {
			return false
		}
	}
	return true
}

// inStep reports whether every feed follows what happens, as far as it can.
func (s *store) inStep() bool {
	if s.recounted {
		return false
	}
	for f, state := range s.feeds {
		if !state.settled || !state.live && !f.kind.optional {
			return false
		}
	}
	return true
}
