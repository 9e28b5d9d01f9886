package cluster

import (
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weirproxy/weir/tests/rig"
)

// load is a constant rate of requests, three GETs to a POST, and a watch over what
// they run into.
type load struct {
	pulse *rig.Pulse
	asked func() map[string]time.Time
	end   chan struct{}
	stall chan time.Duration
	left  chan map[string]time.Time
}

// record is what a load came to.
type record struct {
	shots []rig.Shot
	// stall is the longest time that this process waited for a CPU. A request can't
	// be expected to be faster.
	stall time.Duration

	asked map[string]time.Time // when pods were asked to end, by address
	left  map[string]time.Time // when their slices said that they are not ready
}

// load asks for a host 300 times a second until stop. asked tells at the end when
// pods were asked to end.
func (a *agent) load(host string, asked func() map[string]time.Time) *load {
	a.w.t.Helper()
	l := &load{asked: asked, end: make(chan struct{}), stall: make(chan time.Duration, 1), left: make(chan map[string]time.Time, 1)}
	go func() { l.stall <- longestStall(l.end) }()
	go func() { l.left <- a.w.followSlices(l.end) }()
	l.pulse = (&rig.Pulse{Addr: a.Addr, Host: host, Target: "/", Rate: 300,
		Methods: []string{"GET", "POST", "GET", "GET"}, Within: 5 * time.Second}).Start()
	return l
}

// stop ends the load and waits for what runs.
func (l *load) stop() record {
	shots := l.pulse.Stop()
	close(l.end)
	return record{shots, <-l.stall, l.asked(), <-l.left}
}

// unannounced reports whether a pod had been asked to end during s, or before, while
// its slice called it ready.
func (r record) unannounced(s rig.Shot) bool {
	for address, asked := range r.asked {
		left, wasReady := r.left[address]
		if wasReady && asked.Before(s.Start.Add(s.Took)) && left.After(s.Start) {
			return true
		}
	}
	return false
}

// longestStall sleeps for moments until end and returns by how much the longest of
// them was too long.
func longestStall(end <-chan struct{}) (longest time.Duration) {
	const moment = 5 * time.Millisecond
	for {
		begun := time.Now()
		select {
		case <-end:
			return longest
		case <-time.After(moment):
			longest = max(longest, time.Since(begun)-moment)
		}
	}
}

// followSlices watches the slices of the world's namespace until end and returns, for
// each address that was ready in one, when it no longer was: at the end, if it still
// is.
func (w *world) followSlices(end <-chan struct{}) map[string]time.Time {
	left, slices := make(map[string]time.Time), make(map[string][]string)
	defer func() {
		for _, list := range slices {
			for _, a := range list {
				left[a] = time.Now()
			}
		}
	}()
	for {
		events, err := w.client.DiscoveryV1().EndpointSlices(w.ns).Watch(w.ctx, metav1.ListOptions{})
		if err != nil { // the API server is away
			select {
			case <-end:
				return left
			case <-time.After(100 * time.Millisecond):
				continue
			}
		}
		for open := true; open; {
			select {
			case <-end:
				events.Stop()
				return left
			case e, ok := <-events.ResultChan():
				if s, isSlice := e.Object.(*discoveryv1.EndpointSlice); ok && isSlice {
					if e.Type == watch.Deleted {
						s.Endpoints = nil
					}
					note(s, slices, left)
				}
				open = ok
			}
		}
	}
}

// note takes a new version of a slice into the addresses that each has ready.
func note(s *discoveryv1.EndpointSlice, slices map[string][]string, left map[string]time.Time) {
	before := slices[s.Name]
	var now []string
	for _, e := range s.Endpoints {
		if e.Conditions.Ready == nil || *e.Conditions.Ready {
			now = append(now, e.Addresses...)
			for _, a := range e.Addresses {
				delete(left, a)
			}
		}
	}
	slices[s.Name] = now
	ready := make(map[string]bool)
	for _, list := range slices {
		for _, a := range list {
			ready[a] = true
		}
	}
	for _, a := range before {
		if !ready[a] {
			left[a] = time.Now()
		}
	}
}
