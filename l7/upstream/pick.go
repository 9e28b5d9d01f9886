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
// ones too, unless that leaves none: the last one is never ejected. A tier counts
// only if those before it have no peer left. now is in ms.
func (k *Cluster) Pick(balance route.Balance, hash uint64, tried []*Peer, now int64) *Peer {
	for i := range k.tiers {
		if p := k.tiers[i].pick(balance, hash, tried, now, k.random); p != nil {
			return p
		}
	}
	for i := range k.tiers {
		if p := k.tiers[i].pickNext(tried, now, true); p != nil {
			return p
		}
	}
	return nil
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
