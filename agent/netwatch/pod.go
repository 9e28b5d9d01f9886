package netwatch

import (
	"net/netip"
	"time"
)

const (
	// grace is how long a pod may be without a route, or its link without carrier:
	// whoever restarts a network may flush routes and set them again.
	grace = time.Second
	// lossMax is how long a pod that is not there counts as lost. Nothing asks for it
	// after that, unless the API server has been away for as long.
	lossMax = 10 * time.Minute
	// silenceMax is how long one counts as lost that does not answer its neighbour:
	// it might, and nobody asks again while it is left alone.
	silenceMax = 10 * time.Second
)

// pod is an address that was seen on this node.
type pod struct {
	addr netip.Addr
	link int       // that leads to it, or did
	lost uint64    // number of the loss; 0 is there
	due  time.Time // when it counts as lost or, if it is, no longer so; zero: never
	mute bool      // it was lost because of its silence, which goes on
}

// verdict is what the table says about an address.
type verdict int

const (
	nowhere   verdict = iota // nothing leads to it
	here                     // a link of this node does
	silent                   // a link does, but nobody answers there
	elsewhere                // a route leads away from this node
)

// seek says where a is and which link leads there. last is where it was, or 0: a
// bridge forgets behind which port it saw whom.
func (t *table) seek(a netip.Addr, last int) (index int, v verdict) {
	for _, h := range t.hosts[a] {
		l, ok := t.links[h.link]
		switch {
		case h.gateway.IsValid(), ok && !t.toPod(l):
			v = elsewhere
		case ok && l.up && t.neighbours[seat{h.link, a}].failed:
			return h.link, silent
		case ok && l.up:
			return h.link, here
		}
	}
	if len(t.hosts[a]) != 0 {
		return 0, v
	}
	bridge := t.bridgeOf(a)
	if bridge == 0 {
		return 0, nowhere
	}
	n := t.neighbours[seat{bridge, a}]
	if port := t.ports[station{bridge, n.mac}]; port != 0 {
		last = port
	}
	switch l := t.links[last]; {
	case last == 0 || !l.up || l.master != bridge:
		return 0, nowhere
	case n.failed:
		return last, silent
	}
	return last, here
}

// judge brings what is known of a pod in step and reports whether it was lost or
// found.
func (t *table) judge(a netip.Addr, now time.Time) (changed bool) {
	p, last := t.pods[a], 0
	if p != nil {
		last = p.link
	}
	index, v := t.seek(a, last)
	switch {
	case v == here:
		if p == nil {
			p = &pod{addr: a}
			t.pods[a] = p
		}
		changed = p.lost != 0
		t.place(p, index)
		p.lost, p.mute = 0, false
		t.wait(p, time.Time{})
		return changed
	case p == nil:
		return false
	case v == elsewhere || t.uplink(p.link) || t.uplink(t.links[p.link].master):
		t.forget(p)
		return p.lost != 0
	case v == silent:
		if p.mute {
			return false
		}
		t.place(p, index)
		p.mute = true
		changed = t.lose(p, now.Add(silenceMax))
		t.wait(p, now.Add(silenceMax))
		return changed
	}
	p.mute = false
	if _, exists := t.links[p.link]; !exists {
		return t.lose(p, now.Add(lossMax))
	}
	if p.lost == 0 && p.due.IsZero() {
		t.wait(p, now.Add(grace))
	}
	return false
}

// lose makes p lost until due.
func (t *table) lose(p *pod, due time.Time) (changed bool) {
	if changed = p.lost == 0; changed {
		t.losses++
		p.lost = t.losses
	}
	if changed || p.due.Before(due) {
		t.wait(p, due)
	}
	return changed
}

// expire ends the times that are over and returns the pods that are lost or found
// by that.
func (t *table) expire(now time.Time) (changed []netip.Addr) {
	for p := range t.waiting {
		if now.Before(p.due) {
			continue
		}
		changed = append(changed, p.addr)
		switch {
		case p.lost == 0:
			t.lose(p, now.Add(lossMax))
		case p.mute:
			p.lost = 0
			t.wait(p, time.Time{})
		default:
			t.forget(p)
		}
	}
	return changed
}

// wait sets when p has to be looked at; zero: never.
func (t *table) wait(p *pod, due time.Time) {
	p.due = due
	if due.IsZero() {
		delete(t.waiting, p)
		return
	}
	t.waiting[p] = true
}

// place notes the link of p.
func (t *table) place(p *pod, index int) {
	if p.link == index && t.behind[index][p.addr] {
		return
	}
	t.leave(p)
	p.link = index
	if t.behind[index] == nil {
		t.behind[index] = make(map[netip.Addr]bool)
	}
	t.behind[index][p.addr] = true
}

func (t *table) leave(p *pod) {
	delete(t.behind[p.link], p.addr)
	if len(t.behind[p.link]) == 0 {
		delete(t.behind, p.link)
	}
}

// forget ends what is known of p.
func (t *table) forget(p *pod) {
	t.leave(p)
	t.wait(p, time.Time{})
	delete(t.pods, p.addr)
}
