package netwatch

import (
	"net/netip"
	"time"
)

// owned is an address of the node itself.
type owned struct {
	addr netip.Addr
	link int
}

// table is what the kernel told, and the pods found in it. What its methods change
// takes effect on pods by settle.
type table struct {
	links      map[int]link
	own        map[owned]bool
	hosts      map[netip.Addr][]hop // routes to one address
	subnets    map[subnet]bool
	defaults   map[subnet]bool
	neighbours map[seat]neighbour
	seats      map[station]map[netip.Addr]bool // addresses by hardware address
	ports      map[station]int                 // links by hardware address

	pods    map[netip.Addr]*pod
	behind  map[int]map[netip.Addr]bool // addresses of pods and routes by their link
	waiting map[*pod]bool               // those with a deadline
	dirty   map[netip.Addr]bool         // to be settled
	losses  uint64                      // so far
}

func newTable() *table {
	return &table{
		links: make(map[int]link), own: make(map[owned]bool),
		hosts: make(map[netip.Addr][]hop), subnets: make(map[subnet]bool), defaults: make(map[subnet]bool),
		neighbours: make(map[seat]neighbour), seats: make(map[station]map[netip.Addr]bool), ports: make(map[station]int),
		pods: make(map[netip.Addr]*pod), behind: make(map[int]map[netip.Addr]bool),
		waiting: make(map[*pod]bool), dirty: make(map[netip.Addr]bool),
	}
}

// touchAll makes every pod dirty, and every address that may be one.
func (t *table) touchAll() {
	for a := range t.pods {
		t.dirty[a] = true
	}
	for s := range t.neighbours {
		t.dirty[s.addr] = true
	}
	for a := range t.hosts {
		t.dirty[a] = true
	}
}

// touchWithin is touchAll for the addresses in a subnet. A cluster has one for each
// node, with a neighbour each: what a route of one changes concerns nobody else.
func (t *table) touchWithin(subnet netip.Prefix) {
	touch := func(a netip.Addr) {
		if subnet.Contains(a) {
			t.dirty[a] = true
		}
	}
	for a := range t.pods {
		touch(a)
	}
	for s := range t.neighbours {
		touch(s.addr)
	}
	for a := range t.hosts {
		touch(a)
	}
}

// adopt takes the pods of old over into t, which was read anew: what is missing in
// t is lost as if the kernel had told.
func (t *table) adopt(old *table) {
	t.losses = old.losses
	for a, p := range old.pods {
		t.pods[a] = p
		t.place(p, p.link)
		if !p.due.IsZero() {
			t.waiting[p] = true
		}
	}
	t.touchAll()
}

// settle finds out about all dirty addresses and returns those that are lost or
// found since.
func (t *table) settle(now time.Time) (changed []netip.Addr) {
	for a := range t.dirty {
		if t.judge(a, now) {
			changed = append(changed, a)
		}
	}
	clear(t.dirty)
	return changed
}

// next returns when settling has to go on by itself, zero for never.
func (t *table) next() (at time.Time) {
	for p := range t.waiting {
		if at.IsZero() || p.due.Before(at) {
			at = p.due
		}
	}
	return at
}

// locate returns the link of this node that leads to a, 0 if none does.
func (t *table) locate(a netip.Addr) int {
	last := 0
	if p := t.pods[a]; p != nil {
		last = p.link
	}
	if index, v := t.seek(a, last); v == here || v == silent {
		return index
	}
	for o := range t.own {
		if o.addr == a {
			return o.link
		}
	}
	if len(t.hosts[a]) != 0 {
		return 0
	}
	if bridge := t.bridgeOf(a); bridge != 0 {
		return bridge
	}
	return t.inside(a)
}
