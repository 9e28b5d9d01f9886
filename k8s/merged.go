package k8s

import (
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weirproxy/weir/l7/route"
)

// state is what the copies of one endpoint say together.
type state struct {
	endpoint route.Endpoint
	hints    hints
	ready    bool // takes new requests
	serving  bool // terminates, but still serves
	lost     bool // this node knows that nothing leads to it
}

// merged are the endpoints of one cluster, each address once.
type merged struct {
	at   map[netip.AddrPort]int
	list []state
	from locality
}

// split tells which endpoints take requests: the ready ones, or, if none is,
// those that terminate but still serve. Of both, lost ones count only if there is
// no other: better to try in vain than to answer 503.
func (m *merged) split(p preference) route.Listing {
	chosen := m.choose()
	var l route.Listing
	var active []*state
	for n := range m.list {
		switch s := &m.list[n]; {
		case chosen(s):
			active = append(active, s)
		case s.lost:
			l.Lost = append(l.Lost, s.endpoint)
		default:
			l.Draining = append(l.Draining, s.endpoint)
		}
	}
	l.Tiers = m.from.tiers(active, p)
	return l
}

// choose returns which endpoints are active: the best kind of which there is one.
func (m *merged) choose() func(*state) bool {
	kinds := []func(*state) bool{
		func(s *state) bool { return s.ready && !s.lost },
		func(s *state) bool { return s.serving && !s.lost },
		func(s *state) bool { return s.ready },
		func(s *state) bool { return s.serving },
	}
	for _, kind := range kinds {
		for n := range m.list {
			if kind(&m.list[n]) {
				return kind
			}
		}
	}
	return func(*state) bool { return false }
}

// add adds one copy of an endpoint: ready if any copy is.
func (m *merged) add(addr netip.AddrPort, e *discoveryv1.Endpoint) {
	// The defaults are those of the EndpointSlice API.
	ready := deref(e.Conditions.Ready, true)
	serving := deref(e.Conditions.Serving, ready)
	terminating := deref(e.Conditions.Terminating, false)
	next := state{
		endpoint: route.Endpoint{Addr: addr, Node: deref(e.NodeName, ""), Zone: deref(e.Zone, "")},
		hints:    m.from.read(e.Hints),
		ready:    ready && !terminating,
		serving:  serving && terminating,
	}
	next.endpoint.Local = next.endpoint.Node != "" && next.endpoint.Node == m.from.node
	at, seen := m.at[addr]
	if !seen {
		m.at[addr] = len(m.list)
		m.list = append(m.list, next)
		return
	}
	s := &m.list[at]
	if rank(next) > rank(*s) {
		s.endpoint, s.hints = next.endpoint, next.hints
	}
	s.ready = s.ready || next.ready
	s.serving = s.serving || next.serving
}

func rank(s state) int {
	switch {
	case s.ready:
		return 2
	case s.serving:
		return 1
	}
	return 0
}
