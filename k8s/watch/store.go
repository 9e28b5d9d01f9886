package watch

import (
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/weirproxy/weir/k8s"
)

// apiService is the Service of the API server: its endpoints are refused for
// others, so its slices always count.
var apiService = key{Namespace: "default", Name: "kubernetes"}

// store holds what the feeds brought. Its methods may be called by any goroutine.
type store struct {
	options  k8s.Options
	selector bool             // only Ingresses of selected namespaces are visible
	status   func(key)        // called without the lock when only a status changed; may be nil
	signal   chan struct{}    // capacity 1: something may be there to be told
	now      func() time.Time // time.Now, but in tests

	mu        sync.Mutex
	tables    map[*kind]map[key]*entry
	byService map[key]map[key]*entry // EndpointSlices by their Service
	services  map[key]int            // Ingresses of ours that lead to each Service
	secrets   map[key]int            // and that name each Secret
	recounted bool                   // the keys of secrets changed
	serves    func(*networkingv1.Ingress) bool

	unclassified bool // classes or namespaces changed since serves was made
	feeds        map[*feed]*feedState
	stats        map[*kind]*counters

	// What was told last, which only the goroutine that tells may edit, and what has
	// not been told yet.
	view       *k8s.Objects
	edits      *k8s.Edits
	slices     map[key]*discoveryv1.EndpointSlice
	slicesSeen time.Time // the first event of slices
	dirty      bool      // other objects, or notices, changed
	first      time.Time // the first event of these
	last       time.Time // and the last
	told       bool      // a whole set was told
}

func newStore(o k8s.Options, selector bool, status func(key)) *store {
	s := &store{
		options: o, selector: selector, status: status, signal: make(chan struct{}, 1), now: time.Now,
		tables: make(map[*kind]map[key]*entry), byService: make(map[key]map[key]*entry),
		services: map[key]int{apiService: 1}, secrets: make(map[key]int),
		feeds: make(map[*feed]*feedState), stats: make(map[*kind]*counters),
		slices: make(map[key]*discoveryv1.EndpointSlice), view: k8s.NewObjects(), edits: k8s.NewEdits(),
	}
	for _, k := range kinds {
		s.tables[k], s.stats[k] = make(map[key]*entry), new(counters)
	}
	s.reclassify()
	return s
}

// wake makes the goroutine that tells look.
func (s *store) wake() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// put takes over an object that a watch brought at time at.
func (s *store) put(f *feed, k key, e *entry, at time.Time) {
	s.mu.Lock()
	s.event(f, at)
	statusOnly := s.set(f.kind, k, e, at)
	s.classify()
	s.mu.Unlock()
	if statusOnly && s.status != nil {
		s.status(k)
	}
	s.wake()
}

// remove forgets an object that the server says was deleted.
func (s *store) remove(f *feed, k key, at time.Time) {
	s.mu.Lock()
	s.event(f, at)
	s.unset(f.kind, k, at)
	s.classify()
	s.mu.Unlock()
	s.wake()
}

// replace takes over all objects that the scope of f has, and forgets others in it.
func (s *store) replace(f *feed, all map[key]*entry) {
	var statusOnly []key
	s.mu.Lock()
	now := s.now()
	for k, e := range all {
		if s.set(f.kind, k, e, now) {
			statusOnly = append(statusOnly, k)
		}
	}
	for k := range s.tables[f.kind] {
		if f.scope.has(k) && all[k] == nil {
			s.unset(f.kind, k, now)
		}
	}
	s.classify()
	s.synced(f, now)
	s.mu.Unlock()
	if s.status != nil {
		for _, k := range statusOnly {
			s.status(k)
		}
	}
	s.wake()
}

// set puts e in the place of k and reports whether nothing but the status of an
// Ingress changed.
func (s *store) set(kind *kind, k key, e *entry, at time.Time) (statusOnly bool) {
	old := s.tables[kind][k]
	if old != nil && old.same(e) {
		statusOnly = !sameStatus(old.status, e.status)
		old.status, old.version = e.status, e.version
		return statusOnly
	}
	s.tables[kind][k] = e
	s.changed(kind, k, old, e, at)
	return false
}

func (s *store) unset(kind *kind, k key, at time.Time) {
	old := s.tables[kind][k]
	if old == nil {
		return
	}
	delete(s.tables[kind], k)
	s.changed(kind, k, old, nil, at)
}

// changed notes what follows from e in the place of old, nil for none.
func (s *store) changed(kind *kind, k key, old, e *entry, at time.Time) {
	switch kind {
	case sliceKind:
		s.sliceChanged(k, old, e, at)
		return
	case ingressKind:
		s.edits.Ingresses[k] = true
		s.count(old, false)
		s.count(e, true)
	case classKind, namespaceKind:
		s.unclassified = true
	case serviceKind:
		if s.services[k] == 0 {
			return
		}
		s.edits.Services[k] = true
	}
	s.touch(at)
}

// touch notes that a whole set has to be told.
func (s *store) touch(at time.Time) {
	if !s.dirty {
		s.dirty, s.first = true, at
	}
	s.last = at
}

func (s *store) sliceChanged(k key, old, e *entry, at time.Time) {
	counts := false
	if old != nil {
		delete(s.byService[old.service], k)
		if len(s.byService[old.service]) == 0 {
			delete(s.byService, old.service)
		}
		counts = s.services[old.service] > 0
	}
	var now *discoveryv1.EndpointSlice
	if e != nil {
		if s.byService[e.service] == nil {
			s.byService[e.service] = make(map[key]*entry)
		}
		s.byService[e.service][k] = e
		if s.services[e.service] > 0 {
			now, counts = e.slice(), true
		}
	}
	if !counts {
		return
	}
	if len(s.slices) == 0 {
		s.slicesSeen = at
	}
	s.slices[k] = now
	s.edits.EndpointSlices[k] = true
}
