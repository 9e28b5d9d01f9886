package netwatch

import (
	"net/netip"
	"slices"
)

// hop is one route of the main table, without its destination.
type hop struct {
	link    int // 0: several
	metric  uint32
	gateway netip.Addr // not valid: directly connected
}

// subnet is a route to more than one address.
type subnet struct {
	prefix netip.Prefix
	hop
}

// displace forgets the route to the same destination with the same metric, which
// another one takes the place of: the kernel tells nothing else of that.
func (t *table) displace(to netip.Prefix, metric uint32) {
	if to.IsSingleIP() {
		for _, h := range slices.Clone(t.hosts[to.Addr()]) {
			if h.metric == metric {
				t.removeRoute(to, h)
			}
		}
		return
	}
	for _, set := range []map[subnet]bool{t.defaults, t.subnets} {
		for s := range set {
			if s.prefix == to && s.metric == metric {
				t.removeRoute(to, s.hop)
			}
		}
	}
}

// setRoute takes over a route. replace: it takes the place of the one with the same
// metric.
func (t *table) setRoute(to netip.Prefix, h hop, replace bool) {
	if replace {
		t.displace(to, h.metric)
	}
	switch {
	case to.IsSingleIP():
		a := to.Addr()
		hops := t.hosts[a]
		if !slices.Contains(hops, h) {
			hops = append(hops, h)
		}
		t.hosts[a] = hops
		t.dirty[a] = true
	case to.Bits() == 0:
		t.defaults[subnet{to, h}] = true
		t.touchAll()
	default:
		t.subnets[subnet{to, h}] = true
		t.touchWithin(to)
	}
}

func (t *table) removeRoute(to netip.Prefix, h hop) {
	switch {
	case to.IsSingleIP():
		a := to.Addr()
		t.hosts[a] = slices.DeleteFunc(t.hosts[a], func(o hop) bool { return o == h })
		if len(t.hosts[a]) == 0 {
			delete(t.hosts, a)
		}
		t.dirty[a] = true
	case to.Bits() == 0:
		delete(t.defaults, subnet{to, h})
		t.touchAll()
	default:
		delete(t.subnets, subnet{to, h})
		t.touchWithin(to)
	}
}

// dropRoutes forgets the routes through a link.
func (t *table) dropRoutes(index int) {
	through := func(h hop) bool { return h.link == index }
	for a, hops := range t.hosts {
		if !slices.ContainsFunc(hops, through) {
			continue
		}
		t.hosts[a] = slices.DeleteFunc(hops, through)
		if len(t.hosts[a]) == 0 {
			delete(t.hosts, a)
		}
		t.dirty[a] = true
	}
	for _, set := range []map[subnet]bool{t.defaults, t.subnets} {
		for s := range set {
			if s.link == index {
				t.removeRoute(s.prefix, s.hop)
			}
		}
	}
}

// bridgeOf returns the bridge that a is on by its address, 0 if it is on none.
func (t *table) bridgeOf(a netip.Addr) int {
	best := subnet{}
	for s := range t.subnets {
		if s.prefix.Contains(a) && (!best.prefix.IsValid() || s.prefix.Bits() > best.prefix.Bits()) {
			best = s
		}
	}
	if l, ok := t.links[best.link]; ok && !best.gateway.IsValid() && t.podBridge(l) {
		return best.link
	}
	return 0
}

// inside reports whether a is in a subnet that a pods' link of this node is the
// gateway of: so does Cilium, whose pods have no routes of their own.
func (t *table) inside(a netip.Addr) (index int) {
	for s := range t.subnets {
		if s.prefix.Contains(a) && s.gateway.IsValid() && s.prefix.Contains(s.gateway) &&
			t.own[owned{s.gateway, s.link}] && t.toPod(t.links[s.link]) {
			return s.link
		}
	}
	return 0
}
