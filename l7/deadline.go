package l7

import (
	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/l7/route"
)

// ackMilli is how long a request may go unacknowledged by the endpoint's kernel
// before another endpoint is asked: the deadline that a connect has too.
const ackMilli = 250

// arm sets the deadlines that follow from the exchange's state. At any moment one
// side is waited for: the endpoint (x.timer), the client (c.timer), or both.
func (x *exchange) arm() {
	c, w := x.c, x.w
	if c == nil {
		return
	}
	var up, down int64
	p := x.policy
	switch {
	case x.phase == tunnelled:
		up = x.idleEnd()
	case x.b == nil:
		up = x.hedgeAt
	case x.out.len() > x.sent && !x.writeBroken:
		up = x.b4 + p.SendTimeout.Milliseconds()
	case (x.received || x.expect) && c.out.len() == 0:
		up = x.b4 + p.ReadTimeout.Milliseconds()
		if x.phase == awaiting && !x.acked {
			up = min(up, max(x.b4, x.ackLook)+ackMilli)
		}
	}
	switch {
	case x.phase == tunnelled:
	case c.out.len() > 0:
		down = c.at + clientWriteMilli
	case !x.received && !x.expect && x.out.len() == x.sent:
		down = max(c.at, x.b4) + w.server.config.Limits.BodyTimeout.Milliseconds()
	}
	w.wheel.set(&x.timer, up)
	w.wheel.set(&c.timer, down)
}

// expired: a deadline of the endpoint's side is over.
func (x *exchange) expired() {
	c, w := x.c, x.w
	if c == nil {
		return
	}
	c.register() // from now on it is worth knowing if the client goes away
	switch {
	case x.c == nil: // registering failed
		return
	case x.phase == tunnelled && w.now < x.idleEnd():
		// the client has taken something since
	case x.phase == tunnelled:
		c.close()
		return
	case x.b == nil:
		x.hedge()
	case x.out.len() > x.sent && !x.writeBroken:
		x.fail(errSendTimeout, route.RetryTimeout)
	case x.phase == awaiting && !x.acked && w.now < x.b4+x.policy.ReadTimeout.Milliseconds():
		x.lookForAck()
	case x.phase == awaiting:
		x.fail(errReadTimeout, route.RetryTimeout)
	default:
		x.breakOff()
	}
	x.arm()
}

// idleEnd is when a tunnel has been silent for too long, ms.
func (x *exchange) idleEnd() int64 { return max(x.b4, x.c.at) + x.policy.ReadTimeout.Milliseconds() }

// lookForAck: the request was written a while ago. If the endpoint's kernel has
// not acknowledged it, its host is likely gone: another endpoint is asked, if the
// request may be repeated and there is one.
func (x *exchange) lookForAck() {
	w, k := x.w, x.cluster
	x.ackLook = w.now
	gone, acked := x.b.silent()
	if acked {
		x.acked = true
		probeIdle(x.b.fd, 10)
	}
	if !gone {
		return // it may read slowly: then it is looked at again
	}
	k.Eject(x.b.peer, w.now)
	w.dropIdle(x.b.peer)
	if k.Left(x.tried[:x.peers]) && x.repeatable() && x.another(route.RetryTimeout) {
		k.Stats.Retries.Inc()
		k.Stats.Abandoned.Inc()
		x.dropTry()
		x.lastFault = errUnacknowledged
		x.try()
	}
}

// probeIdle has the kernel ask a silent peer whether it is still there (TCP
// keep-alive) after idle seconds, then every second; three misses end the
// connection.
func probeIdle(fd int32, idle int) {
	unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, idle)
	unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 1)
	unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 3)
	unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
}

// clientExpired: a deadline of the client's side is over.
func (x *exchange) clientExpired() {
	if x.received || x.c.out.len() > 0 {
		x.c.abort()
		return
	}
	x.badBody(errBodyTimeout)
}

// silent reports whether b's kernel has not answered since the last byte was
// written, although bytes are in flight that it should have acknowledged; acked,
// whether it has acknowledged all. What waits for the peer's window to open is no
// sign of its absence, and a kernel that has no room for a segment still answers
// it (tcp(7), TCP_INFO).
func (b *backend) silent() (silent, acked bool) {
	const grain = 10 // ms: the kernel counts in jiffies
	i, err := unix.GetsockoptTCPInfo(int(b.fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return false, false
	}
	since := b.w.now - b.x.b4
	return i.Unacked > 0 && int64(i.Last_ack_recv)+grain >= since, i.Unacked == 0 && i.Notsent_bytes == 0
}

func (b *backend) isSilent() bool {
	silent, _ := b.silent()
	return silent
}
