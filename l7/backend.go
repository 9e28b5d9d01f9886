package l7

import (
	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/l7/upstream"
)

const backendEvents = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff

// backend is a connection to an endpoint.
type backend struct {
	// set when it opens
	w       *Worker
	fd      int32 // owned: only close closes it
	cluster *upstream.Cluster
	peer    *upstream.Peer
	opened  int64 // ms
	dialled int64 // µs

	// owned by the worker's goroutine
	x        *exchange // nil while idle
	dialling bool
	closed   bool
	pooled   bool // its descriptor lies in the peer's pool
	readable bool
	writable bool
	fin      bool  // the endpoint has finished sending, or the connection broke
	reset    bool  // a write was told of a reset, which a read then isn't: its end is none
	more     bool  // in holds part of a head: more must be read to go on
	in       queue // read, not parsed
	requests int
	timer    timer // of an idle connection

	older, newer *backend // in w.idle
}

// dial starts a connect to p for x. It fails at once, with false, if the kernel
// says so or no descriptor is left.
func (x *exchange) dial(p *upstream.Peer) bool {
	w := x.w
	addr := p.Endpoint.Addr
	family := unix.AF_INET
	if addr.Addr().Is6() {
		family = unix.AF_INET6
	}
	if !w.roomForBackend() {
		x.lastFault = errDescriptors
		return false
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil && w.evictIdle() {
		fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	}
	if err != nil {
		x.lastFault = errDescriptors
		return false
	}
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if err := unix.Connect(fd, sockaddr(addr)); err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		x.cluster.Stats.ConnectErrors.Inc()
		switch err {
		case unix.ECONNREFUSED, unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EHOSTDOWN:
			x.cluster.Eject(p, w.now) // others, such as no free port, are no fault of its
		}
		x.lastFault = errConnect
		return false
	}
	b := w.newBackend()
	b.fd, b.cluster, b.peer = int32(fd), x.cluster, p
	b.opened, b.dialled = w.now, w.micro
	b.x, b.dialling = x, true
	gen := w.attach(b.fd, b)
	w.backends++
	if e := sysEpollAdd(w.epfd, b.fd, gen, backendEvents); e != 0 {
		b.x = nil
		b.close()
		x.lastFault = errDescriptors
		return false
	}
	x.dials[x.dialing] = b
	x.dialing++
	return true
}

func (w *Worker) newBackend() *backend {
	var b *backend
	if n := len(w.spare.backends); n > 0 {
		b = w.spare.backends[n-1]
		w.spare.backends = w.spare.backends[:n-1]
	} else {
		b = new(backend)
	}
	*b = backend{w: w}
	b.timer.owner = b
	return b
}

// note takes in what events say, other than EPOLLOUT, before any of their batch is
// acted upon.
func (b *backend) note(events uint32) {
	if b.x == nil {
		b.close() // idle: whatever it says, it can't be used any more
		return
	}
	if events&(unix.EPOLLHUP|unix.EPOLLERR|unix.EPOLLRDHUP) != 0 {
		b.fin = true
	}
	b.readable = true
}

// event acts upon events, which note has seen.
func (b *backend) event(events uint32) {
	x := b.x
	switch {
	case b.dialling: // it may have answered and left already: there is no second edge
		b.connected(events&(unix.EPOLLHUP|unix.EPOLLERR) != 0)
	case events&unix.EPOLLOUT != 0 && !b.writable:
		b.writable = true
		if x == nil {
			return
		}
		x.resumeUp()
	}
	if x == nil {
		return
	}
	if x.phase == tunnelled && x.downDone && events&(unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		x.half(&x.upDone, b.fd, true) // it takes nothing more either
		return
	}
	if x.b == b && b.readable {
		x.resumeDown()
	}
}

// connected ends a connect.
func (b *backend) connected(broken bool) {
	w, x := b.w, b.x
	if broken {
		b.cluster.Stats.ConnectErrors.Inc()
		b.cluster.Eject(b.peer, w.now)
		x.dialFailed(b, errConnect)
		return
	}
	b.dialling = false
	b.writable = true
	b.peer.Restore()
	b.cluster.Stats.Opened.Inc()
	b.cluster.Stats.Wait.Observe(uint32(w.micro - b.dialled))
	x.use(b)
	x.arm()
}

// wrecked notes that a write failed with e. EPIPE follows an end of stream that
// came in order; any other error takes the place of one that was cut off, and is
// reported once: the next read sees a plain end.
func (b *backend) wrecked(e unix.Errno) {
	b.fin, b.readable = true, true
	b.reset = e != unix.EPIPE
}

// expired: it was idle too long.
func (b *backend) expired() {
	if b.x == nil {
		b.close()
	}
}

// read fills p. It returns 0 if nothing is there now, -1 at the end of the
// stream, -2 if the connection broke.
func (b *backend) read(p []byte) int {
	n, e := sysRead(b.fd, p)
	switch {
	case n > 0:
		b.w.used += n
		b.readable = n == len(p) || b.fin
		return n
	case e == unix.EAGAIN:
		b.readable = false
		return 0
	}
	b.readable, b.fin = false, true
	if e == 0 && !b.reset {
		return -1
	}
	return -2
}

// close closes the connection. The caller has taken it away from its exchange.
func (b *backend) close() {
	if b.closed {
		return
	}
	b.closed = true
	w := b.w
	if b.pooled {
		w.idle.remove(b)
		w.clusters.Remove(b.peer, b.fd)
	}
	w.detach(b.fd)
	sysClose(b.fd)
	w.wheel.stop(&b.timer)
	b.in.reset(&w.buffers)
	b.x = nil
	w.backends--
	w.dropped = append(w.dropped, b)
}
