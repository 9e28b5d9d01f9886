package upstream

import (
	"math/rand/v2"

	"github.com/weirproxy/weir/l7/route"
)

// tier is a part of a cluster's active peers that is equally near.
type tier struct {
	peers []*Peer
	next  int // round robin
	ring  ring
}

// split cuts the active peers into tiers. A tier goes on with its turn.
func (k *Cluster) split() {
	old := k.tiers
	k.tiers = make([]tier, len(k.set.Tiers))
	start := 0
	for i, end := range k.set.Tiers {
		k.tiers[i].peers = k.active[start:end:end]
		if i < len(old) {
			k.tiers[i].next = old[i].next
		}
		start = end
	}
}

// pick returns a peer that is not in tried and not ejected, nil if there is none.
func (r *tier) pick(balance route.Balance, hash uint64, tried []*Peer, now int64, random *rand.Rand) *Peer {
	switch balance {
	case route.EWMA:
		return r.pickEWMA(tried, now, random)
	case route.Hash:
		return r.pickHash(hash, tried, now)
	}
	return r.pickNext(tried, now, false)
}

func (r *tier) pickNext(tried []*Peer, now int64, ejectedToo bool) *Peer {
	n := len(r.peers)
	for range n {
		if r.next >= n {
			r.next = 0
		}
		p := r.peers[r.next]
		r.next++
		if p.usable(tried, now, ejectedToo) {
			return p
		}
	}
	return nil
}

// pickEWMA: the better of two random choices.
func (r *tier) pickEWMA(tried []*Peer, now int64, random *rand.Rand) *Peer {
	n := len(r.peers)
	if n < 3 {
		var best *Peer
		for _, p := range r.peers {
			if p.usable(tried, now, false) && (best == nil || p.score() < best.score()) {
				best = p
			}
		}
		return best
	}
	for range 3 { // a further throw if both were unusable
		i := random.IntN(n)
		j := random.IntN(n - 1)
		if j >= i {
			j++
		}
		a, b := r.peers[i], r.peers[j]
		aOK, bOK := a.usable(tried, now, false), b.usable(tried, now, false)
		switch {
		case aOK && bOK && b.score() < a.score():
			return b
		case aOK:
			return a
		case bOK:
			return b
		}
	}
	return r.pickNext(tried, now, false)
}

// score is the expected wait: requests ahead times their latency. A peer without
// history counts as fast, so that it is tried.
func (p *Peer) score() float64 {
	return float64(p.Outstanding+1) * (p.ewma + 1)
}
