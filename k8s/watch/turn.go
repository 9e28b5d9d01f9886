package watch

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/k8s"
)

// How changes of anything but EndpointSlices are gathered: until nothing happens
// for quietTime, so that what was written together arrives together, but never
// longer than gatherTime after the first.
const (
	quietTime  = 10 * time.Millisecond
	gatherTime = 50 * time.Millisecond
)

// stepTime is how long objects are held back after their first change while a
// watch is being restored or a Secret that they name is being read: the rest of
// what was written with them may be still to come.
const stepTime = time.Second

// tell calls changed with what there is to be told, until ctx ends. secrets is
// called before, to open and close the feeds of Secrets.
func (s *store) tell(ctx context.Context, secrets func(), changed func(k8s.Change)) {
	for {
		secrets()
		c, wait := s.next()
		if c != nil {
			changed(*c)
			if ctx.Err() != nil {
				return
			}
			continue
		}
		var due <-chan time.Time
		if wait > 0 {
			due = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.signal:
		case <-due:
		}
	}
}

// next returns what is to be told now, or nil and when to ask again at the latest,
// 0 for only after a signal.
func (s *store) next() (*k8s.Change, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.told {
		if !s.ready() {
			return nil, 0
		}
		s.told = true
		c := s.whole()
		return c, 0
	}
	if len(s.slices) > 0 {
		c := &k8s.Change{Slices: s.slices, Seen: s.slicesSeen}
		s.slices = make(map[key]*discoveryv1.EndpointSlice)
		return c, 0
	}
	if !s.dirty {
		return nil, 0
	}
	now := s.now()
	wait := min(s.last.Add(quietTime).Sub(now), s.first.Add(gatherTime).Sub(now))
	if wait <= 0 && !s.inStep() {
		wait = s.first.Add(stepTime).Sub(now)
	}
	if wait > 0 {
		return nil, wait
	}
	return s.whole(), 0
}

// whole returns all that is visible and counts, and what differs from before.
func (s *store) whole() *k8s.Change {
	o := s.view
	o.Edits = s.edits
	for k := range s.edits.Ingresses {
		place(o.Ingresses, k, s.tables[ingressKind][k], s.visible(k.Namespace))
	}
	for k := range s.edits.Services {
		place(o.Services, k, s.tables[serviceKind][k], s.services[k] > 0)
	}
	for k := range s.edits.EndpointSlices {
		e := s.tables[sliceKind][k]
		place(o.EndpointSlices, k, e, e != nil && s.services[e.service] > 0)
	}
	o.IngressClasses = make(map[string]*networkingv1.IngressClass, len(s.tables[classKind]))
	for k, e := range s.tables[classKind] {
		o.IngressClasses[k.Name] = e.object.(*networkingv1.IngressClass)
	}
	o.ConfigMaps = make(map[key]*corev1.ConfigMap, len(s.tables[configMapKind]))
	for k, e := range s.tables[configMapKind] {
		place(o.ConfigMaps, k, e, true)
	}
	o.Secrets = make(map[key]*corev1.Secret, len(s.tables[secretKind]))
	for k, e := range s.tables[secretKind] {
		place(o.Secrets, k, e, true)
	}
	o.Node = nil
	for _, e := range s.tables[nodeKind] {
		o.Node = e.object.(*corev1.Node)
	}
	out := *o
	c := &k8s.Change{Objects: &out, Notices: s.notices(), Seen: s.first}
	s.edits = k8s.NewEdits()
	clear(s.slices)
	s.dirty = false
	return c
}

// place makes m have the object of e, or none if e is nil or does not count.
func place[T metav1.Object](m map[key]T, k key, e *entry, counts bool) {
	if e == nil || !counts {
		delete(m, k)
		return
	}
	m[k] = e.object.(T)
}

// notices returns those about feeds, sorted.
func (s *store) notices() []k8s.Notice {
	var out []k8s.Notice
	for f, state := range s.feeds {
		if noticed(f, state.failure) {
			out = append(out, forbiddenNotice(f))
		}
	}
	slices.SortFunc(out, func(a, b k8s.Notice) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}
