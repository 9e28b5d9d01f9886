package l7

import (
	"github.com/weirproxy/weir/l7/http1"
	"github.com/weirproxy/weir/l7/route"
	"github.com/weirproxy/weir/l7/upstream"
)

// try sends the request to the next endpoint.
func (x *exchange) try() {
	w, k := x.w, x.cluster
	for x.tries == 0 || x.lastFault != nil {
		p := k.Pick(x.policy.Balance, x.hash, x.tried[:x.peers], w.now)
		if p == nil {
			break
		}
		if x.start(p) {
			return
		}
		w.count(x.lastFault)
		if x.lastFault == errConnect && x.unreached() {
			x.freeTries++
			x.tries--
		} else if !x.another(route.RetryError) {
			break
		}
		k.Stats.Retries.Inc()
	}
	err := x.lastFault
	if err == nil {
		err = errNoEndpoint
		k.Stats.NoEndpoint.Inc()
		w.count(err)
	}
	x.answer(err)
}

// start makes p the endpoint of the try: on an idle connection, or a new one. It
// reports whether the try is under way.
func (x *exchange) start(p *upstream.Peer) bool {
	w := x.w
	x.tries++
	x.ejected = p.Out(w.now)
	if x.peers < triesMax {
		x.tried[x.peers] = p
		x.peers++
	}
	if !x.fresh {
		if b := w.takeIdle(p); b != nil {
			x.cluster.Stats.Reused.Inc()
			x.cluster.Stats.Wait.Observe(0)
			x.use(b)
			return true
		}
	}
	if !x.dial(p) {
		return false
	}
	x.dialEnd = w.now + x.policy.ConnectTimeout.Milliseconds()
	x.hedgeAt = min(w.now+w.server.config.Upstream.HedgeAfter.Milliseconds(), x.dialEnd)
	return true
}

// use makes b the connection of the try and starts to write.
func (x *exchange) use(b *backend) {
	x.leaveDials(b)
	x.b, b.x = b, x
	b.requests++
	b.peer.Outstanding++
	x.sent, x.wrote, x.acked, x.sentAt = 0, false, false, 0
	x.begun = x.informational > 0 // the client has seen those
	x.b4 = x.w.now
	x.pumpUp()
}

// leaveDials closes the connects under way but keep.
func (x *exchange) leaveDials(keep *backend) {
	for i := range x.dialing {
		if b := x.dials[i]; b != keep {
			b.close()
		}
		x.dials[i] = nil
	}
	x.dialing = 0
}

// dialFailed: the connect b broke. The others go on; without others the next
// endpoint is tried.
func (x *exchange) dialFailed(b *backend, err *http1.Error) {
	for i := range x.dialing {
		if x.dials[i] == b {
			x.dialing--
			x.dials[i] = x.dials[x.dialing]
			x.dials[x.dialing] = nil
			break
		}
	}
	b.close()
	if x.dialing > 0 {
		x.uncount()
		x.company()
		x.arm()
		return
	}
	x.failed(err, route.RetryError, x.unreached())
}

// unreached reports whether a connect that was refused may be followed by one to
// another endpoint without counting as a try: when many pods end at one time, each
// of the first that are asked refuses. One that was known to refuse costs a try.
func (x *exchange) unreached() bool {
	p := x.policy
	return p.RetryOn&route.RetryError != 0 && p.Tries != 1 && !x.ejected && x.freeTries < triesMax && x.timeLeft()
}

// uncount takes a try that was refused off the count, if that is free.
func (x *exchange) uncount() {
	if x.unreached() {
		x.freeTries++
		x.tries--
	}
}

// timeLeft reports whether the policy allows a further try at this time.
func (x *exchange) timeLeft() bool {
	p := x.policy
	return p.TriesTimeout <= 0 || x.w.now-x.firstAt < p.TriesTimeout.Milliseconds()
}

// hedge: no connect has succeeded for a while. Another endpoint is tried beside
// the one that hangs, which gets no new requests meanwhile; the first to connect
// wins.
func (x *exchange) hedge() {
	w, k := x.w, x.cluster
	if w.now >= x.dialEnd {
		for i := range x.dialing {
			k.Stats.ConnectErrors.Inc()
			k.Eject(x.dials[i].peer, w.now)
		}
		x.leaveDials(nil)
		x.fail(errConnectTimeout, route.RetryTimeout)
		return
	}
	for i := range x.dialing {
		k.Eject(x.dials[i].peer, w.now)
	}
	x.hedgeAt = x.dialEnd
	x.company()
}

// company starts one more connect, if the policy allows it.
func (x *exchange) company() {
	w, k := x.w, x.cluster
	for x.dialing < dialsMax && x.another(route.RetryTimeout) {
		p := k.Pick(x.policy.Balance, x.hash, x.tried[:x.peers], w.now)
		if p == nil {
			break
		}
		k.Stats.Retries.Inc()
		if !w.roomForBackend() && x.dialing > 0 {
			x.dropDial() // the connect that hangs is worth the least
		}
		if end := x.dialEnd; x.start(p) {
			if x.b == nil {
				x.dialEnd = max(end, x.dialEnd)
			}
			return
		}
		w.count(x.lastFault) // refused at once: on to the next
		if x.lastFault == errConnect {
			x.uncount()
		}
	}
	if x.dialing == 0 {
		x.fail(x.lastFault, route.RetryTimeout)
	}
}

// dropDial closes the oldest connect under way.
func (x *exchange) dropDial() {
	x.dials[0].close()
	x.dialing--
	copy(x.dials[:], x.dials[1:])
	x.dials[x.dialing] = nil
}

// another reports whether the policy allows one more try after a fault of kind
// cond, and takes it out of the budget.
func (x *exchange) another(cond route.RetryOn) bool {
	p, w := x.policy, x.w
	switch {
	case p.RetryOn&cond == 0, p.Tries > 0 && x.tries >= p.Tries, x.tries >= triesMax:
		return false
	case !x.timeLeft():
		return false
	}
	return x.cluster.Spend(w.now)
}

// repeatable reports whether the request may be sent once more: all of it is
// kept, and nothing of it can have been processed or the method allows that.
func (x *exchange) repeatable() bool {
	if !x.replay || x.phase != awaiting {
		return false
	}
	return !x.wrote || x.method.Idempotent() || x.policy.RetryOn&route.RetryNonIdempotent != 0
}

// fail ends a try that broke before the client saw anything of an answer: the
// request goes to another endpoint or is answered with err.
func (x *exchange) fail(err *http1.Error, cond route.RetryOn) {
	stale := x.b != nil && x.b.requests > 1 && cond == route.RetryError
	x.failed(err, cond, stale)
}

// failed: after a byte of an answer the request is repeated only where the policy
// looks at answers. Free tries cost nothing of the policy's count or of the budget.
// They follow a pooled connection that was closed meanwhile, an endpoint that
// disappeared, or a connect that was refused: that says nothing about the next one.
func (x *exchange) failed(err *http1.Error, cond route.RetryOn, free bool) {
	repeatable := x.repeatable() && !(x.begun && cond&(route.RetryError|route.RetryTimeout) != 0)
	peer := x.dropTry()
	if x.phase != awaiting {
		x.breakOff()
		return
	}
	x.lastFault = err
	x.w.count(err)
	switch {
	case !repeatable:
	case free && x.policy.RetryOn&cond != 0 && x.freeTries < triesMax:
		x.freeTries++
		x.fresh = x.fresh || peer != nil
		x.tries--
		x.forget(peer)
		x.cluster.Stats.Retries.Inc()
		x.try()
		x.arm()
		return
	case x.another(cond):
		x.cluster.Stats.Retries.Inc()
		x.try()
		x.arm()
		return
	}
	x.answer(err)
}

// forget takes peer off the list of those tried.
func (x *exchange) forget(peer *upstream.Peer) {
	if x.peers > 0 && x.tried[x.peers-1] == peer {
		x.peers--
	}
}

// dropTry closes the try's connections and returns its endpoint.
func (x *exchange) dropTry() *upstream.Peer {
	x.leaveDials(nil)
	b := x.b
	if b == nil {
		return nil
	}
	x.b, b.x = nil, nil
	b.peer.Outstanding--
	if !x.received || x.out.len() > x.sent {
		sysReset(b.fd) // the endpoint must not take a part for the whole
	}
	b.close()
	x.first = -1
	x.writeBroken = false
	return b.peer
}

// releaseTry gives the connection back to its pool if it is fit for another
// request, or closes it.
func (x *exchange) releaseTry() {
	b := x.b
	if b == nil || !x.reusable() {
		x.dropTry()
		return
	}
	x.b, b.x = nil, nil
	b.peer.Outstanding--
	b.rest()
}

// reusable: the answer and the request are complete and nothing came behind.
func (x *exchange) reusable() bool {
	b := x.b
	return x.phase == streaming && x.reuse && x.response.Done() && x.received && x.out.len() == x.sent &&
		!x.writeBroken && !b.fin && !b.readable && b.in.len() == 0
}
