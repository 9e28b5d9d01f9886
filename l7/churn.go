package l7

import (
	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/l7/route"
	"github.com/weirproxy/weir/l7/upstream"
)

// probeMilli is how long an endpoint that is listed no more may take to answer a
// connect before what waits for it is given up.
const probeMilli = 200

// silentMilli is how old unacknowledged bytes must be to mean that nobody is
// there: far above a round trip, below TCP's shortest retransmission timer.
const silentMilli = 100

// peerChanged: p takes no new requests. Its idle connections close; what runs on
// it finishes, unless it is gone.
func (w *Worker) peerChanged(p *upstream.Peer) {
	w.dropIdle(p)
	if p.State == upstream.Gone {
		w.lost = true
	}
}

// abandon looks after everything that waits for an endpoint that is gone. A pod
// leaves its slice when it has ended; with its network gone too, no RST will ever
// tell. Connects are redone elsewhere at once, and so is what the endpoint's
// kernel should have acknowledged and has not. For the rest a connect probes whether the endpoint
// still lives: then it may finish.
func (w *Worker) abandon() {
	for fd := range w.slots {
		b, ok := w.slots[fd].h.(*backend)
		if !ok || b.x == nil || b.peer.State != upstream.Gone {
			continue
		}
		x := b.x
		switch {
		case b.dialling:
			x.dialFailed(b, errGone)
			x.arm()
		case x.phase == awaiting:
			if gone, _ := b.silent(); gone && w.now-x.b4 >= silentMilli {
				x.abandoned()
				continue
			}
			probeIdle(b.fd, 1)
			w.probe(b.peer) // last: if it fails at once, b is closed by it
		default:
			probeIdle(b.fd, 1)
		}
	}
}

// abandoned gives a try up whose endpoint is gone.
func (x *exchange) abandoned() {
	x.cluster.Stats.Abandoned.Inc()
	if x.b != nil {
		x.cluster.Forget(x.b.peer)
	}
	x.failed(errGone, route.RetryError, true)
	x.arm()
}

// probe is a connect that asks whether an endpoint lives.
type probe struct {
	w     *Worker
	fd    int32
	peer  *upstream.Peer
	timer timer
}

// probe starts a probe of p if none runs.
func (w *Worker) probe(p *upstream.Peer) {
	if w.probes[p] != nil {
		return
	}
	addr := p.Endpoint.Addr
	family := unix.AF_INET
	if addr.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return // TCP keep-alive, set by the caller, finds out too, later
	}
	r := &probe{w: w, fd: int32(fd), peer: p}
	r.timer.owner = r
	w.probes[p] = r
	gen := w.attach(r.fd, r)
	if err := unix.Connect(fd, sockaddr(addr)); err != nil && err != unix.EINPROGRESS {
		r.end(dead)
		return
	}
	sysEpollAdd(w.epfd, r.fd, gen, backendEvents)
	w.wheel.set(&r.timer, w.now+probeMilli)
}

// event: a host that refuses the probe is there; had the process that holds the
// other connections died, its kernel would have reset them. It may finish them.
func (r *probe) event(events uint32) {
	if events&(unix.EPOLLERR|unix.EPOLLHUP) == 0 {
		r.end(answered)
		return
	}
	e, err := unix.GetsockoptInt(int(r.fd), unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && unix.Errno(e) == unix.ECONNREFUSED {
		r.end(answered)
		return
	}
	r.end(dead)
}

func (r *probe) expired() { r.end(unanswered) }

// verdict is what a probe found out.
type verdict uint8

const (
	answered   verdict = iota
	unanswered         // in its time: dead, or too busy to accept
	dead               // the network says so
)

// end closes the probe. If the endpoint is dead, what waits for it is abandoned; if
// that is not sure, what may be repeated, and what its kernel has not acknowledged.
func (r *probe) end(v verdict) {
	w := r.w
	delete(w.probes, r.peer)
	w.wheel.stop(&r.timer)
	w.detach(r.fd)
	sysReset(r.fd)
	sysClose(r.fd)
	if v == answered {
		return
	}
	for fd := range w.slots {
		b, ok := w.slots[fd].h.(*backend)
		if !ok || b.peer != r.peer || b.x == nil || b.x.phase != awaiting {
			continue
		}
		if v == dead || b.x.repeatable() || b.isSilent() {
			b.x.abandoned()
		}
	}
}

// follow puts table t in force for this worker: clusters that it does not use any
// more are forgotten.
func (w *Worker) follow(t *route.Table) {
	w.seen = t
	w.clusters.Retain(t.Uses, w.peerChanged)
}
