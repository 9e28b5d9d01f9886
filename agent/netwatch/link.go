package netwatch

import "slices"

// link is a network interface as far as it matters here.
type link struct {
	index  int
	name   string
	kind   string // as the kernel calls it: "veth", "bridge"; "" for hardware
	up     bool   // enabled, and with carrier: the other end of a veth is enabled too
	enable bool   // set up by whoever configures it
	master int    // index of the bridge that it is a port of, or 0
}

// podKinds are the kinds of links whose other end is in a pod.
var podKinds = []string{"veth", "netkit"}

// toPod reports whether a route through l to one address leads to a pod.
func (t *table) toPod(l link) bool { return slices.Contains(podKinds, l.kind) && !t.uplink(l.index) }

// podBridge reports whether l is a bridge that pods are ports of.
func (t *table) podBridge(l link) bool { return l.kind == "bridge" && !t.uplink(l.index) }

// uplink reports whether a default route leads through a link: what is behind it
// is elsewhere, whatever kind it is.
func (t *table) uplink(index int) bool {
	for d := range t.defaults {
		if d.link == index {
			return true
		}
	}
	return false
}

// setLink takes over a link. With a link that is disabled its IPv4 routes go, of
// which the kernel tells nothing.
func (t *table) setLink(l link) {
	old, known := t.links[l.index]
	if known && old == l {
		return
	}
	t.links[l.index] = l
	if !l.enable {
		t.dropRoutes(l.index)
	}
	t.touchLink(l.index)
}

// removeLink forgets a link and all that goes with it.
func (t *table) removeLink(index int) {
	if _, ok := t.links[index]; !ok {
		return
	}
	delete(t.links, index)
	t.dropRoutes(index)
	for a := range t.own {
		if a.link == index {
			delete(t.own, a)
		}
	}
	for s := range t.ports {
		if t.ports[s] == index || s.bridge == index {
			delete(t.ports, s)
		}
	}
	for s := range t.neighbours {
		if s.link == index {
			t.removeNeighbour(s)
		}
	}
	t.touchLink(index)
}

// touchLink makes the pods behind a link dirty.
func (t *table) touchLink(index int) {
	for a := range t.behind[index] {
		t.dirty[a] = true
	}
}
