package upstream

import (
	"math"

	"github.com/weirproxy/weir/l7/route"
)

// ejectFor is how long an endpoint stays out of rotation after an error if its
// slice doesn't change before: nginx's fail_timeout.
const ejectFor = 10_000 // ms

// decay is the time constant of the latency average, that of ingress-nginx's
// ewma balancer.
const decay = 10_000 // ms

// Pick returns the endpoint for the next try, or nil if none is left.
//
// hash is the key's hash for route.Hash. Peers in tried are left out; ejected
// ones too, unless that leaves none: the last one is never ejected. now is in ms.
func (k *Cluster) Pick(balance route.Balance, hash uint64, tried []*Peer, now int64) *Peer {
	var p *Peer
	switch balance {
	case route.EWMA:
		p = k.pickEWMA(tried, now)
	case route.Hash:
		p = k.pickHash(hash, tried, now)
	default:
		p = k.pickNext(tried, now, false)
	}
	if p == nil {
		p = k.pickNext(tried, now, true)
	}
	return p
}

func (p *Peer) usable(tried []*Peer, now int64, ejectedToo bool) bool {
	if p.outUntil > now && !ejectedToo {
		return false
	}
	for _, t := range tried {
		if t == p {
			return false
		}
	}
	return true
}

func (k *Cluster) pickNext(tried []*Peer, now int64, ejectedToo bool) *Peer {
	n := len(k.active)
	for range n {
		if k.next >= n {
			k.next = 0
		}
		p := k.active[k.next]
		k.next++
		if p.usable(tried, now, ejectedToo) {
			return p
		}
	}
	return nil
}

// pickEWMA: the better of two random choices.
func (k *Cluster) pickEWMA(tried []*Peer, now int64) *Peer {
	n := len(k.active)
	if n < 3 {
		var best *Peer
		for _, p := range k.active {
			if p.usable(tried, now, false) && (best == nil || k.score(p) < k.score(best)) {
				best = p
			}
		}
		return best
	}
	for range 3 { // a further throw if both were unusable
		i := k.random.IntN(n)
		j := k.random.IntN(n - 1)
		if j >= i {
			j++
		}
		a, b := k.active[i], k.active[j]
		aOK, bOK := a.usable(tried, now, false), b.usable(tried, now, false)
		switch {
		case aOK && bOK && k.score(b) < k.score(a):
			return b
		case aOK:
			return a
		case bOK:
			return b
		}
	}
	return k.pickNext(tried, now, false)
}

// score is the expected wait: requests ahead times their latency. A peer without
// history counts as fast, so that it is tried.
func (k *Cluster) score(p *Peer) float64 {
	return float64(p.Outstanding+1) * (p.ewma + 1)
}

// Observe feeds the latency average with one answer: us microseconds from the
// request to its first byte.
func (p *Peer) Observe(us float64, now int64) {
	if p.ewmaAt == 0 {
		p.ewma = us
	} else {
		w := math.Exp(-float64(now-p.ewmaAt) / decay)
		// Answers in the same millisecond still count a little.
		w = min(w, 0.98)
		p.ewma = p.ewma*w + us*(1-w)
	}
	p.ewmaAt = now
}

// Eject takes p out of rotation after a connect that was refused, unreachable or
// too slow, until its slice changes, it answers again, or ten seconds are over.
func (k *Cluster) Eject(p *Peer, now int64) {
	if p.outUntil <= now && p.State == Active && len(k.active) > 1 {
		k.Stats.Ejections.Inc()
	}
	p.outUntil = now + ejectFor
}

// Restore puts p back into rotation: it works.
func (p *Peer) Restore() { p.outUntil = 0 }
