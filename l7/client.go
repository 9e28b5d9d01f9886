package l7

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// clientEvents is what a client's descriptor is registered for, once: edges only.
const clientEvents = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET&0xffffffff

// clientMode is what a client's connection is in.
type clientMode uint8

const (
	clientOpen   clientMode = iota // between requests, or in an exchange
	clientLast                     // the last answer is on its way; then close
	clientLinger                   // everything is written; what still comes is thrown away
	clientClosed
)

// client is a connection that a client opened.
type client struct {
	// set when it opens
	w      *Worker
	fd     int32 // owned: only close closes it
	gen    uint32
	l      *listener
	addr   netip.AddrPort
	opened int64 // ms

	// owned by the worker's goroutine
	mode       clientMode
	registered bool // in the epoll set
	readable   bool // a read may find something
	writable   bool // the last write was not cut short
	fin        bool // the client has finished sending: read on until 0
	queued     bool // in w.runnable
	yielded    bool // in w.yielded
	serving    bool // serve runs further up the stack
	timer      timer
	in         queue // read, not parsed
	out        queue // to be written
	scanned    int   // bytes of an incomplete head in in that were looked at
	x          *exchange
	requests   int
	at         int64 // ms: the last byte read or written
	headAt     int64 // µs: when the request that is read began, 0: none did
	unread     bool  // it has announced bytes that were not read
	lingered   int   // bytes thrown away
}

// open takes a connection that was just accepted.
func (w *Worker) open(fd int32, l *listener) {
	var c *client
	if n := len(w.spare.clients); n > 0 {
		c = w.spare.clients[n-1]
		w.spare.clients = w.spare.clients[:n-1]
	} else {
		c = new(client)
	}
	*c = client{w: w, fd: fd, l: l, addr: addrPort(&w.accepted), opened: w.now, at: w.now, readable: true, writable: true}
	c.timer.owner = c
	c.gen = w.attach(fd, c)
	w.clients++
	w.local.accepted++
	w.wheel.set(&c.timer, w.now+w.server.config.Limits.IdleTimeout.Milliseconds())
	if l.misses > 4 && w.random.Uint32()%16 != 0 {
		c.register() // clients here rarely have sent anything yet
		return
	}
	c.serve()
}

// register adds the descriptor to the epoll set. A connection that is answered
// before it must be waited for never needs it.
func (c *client) register() {
	if c.registered || c.mode == clientClosed {
		return
	}
	c.registered = true
	if e := sysEpollAdd(c.w.epfd, c.fd, c.gen, clientEvents); e != 0 {
		c.w.server.config.Logger.Error("client is dropped: epoll_ctl", "worker", c.w.id, "err", e)
		c.abort()
	}
}

func (c *client) event(events uint32) {
	if events&unix.EPOLLERR != 0 {
		c.abort()
		return
	}
	if events&(unix.EPOLLRDHUP|unix.EPOLLHUP) != 0 {
		c.fin, c.readable = true, true
	}
	if events&unix.EPOLLIN != 0 {
		c.readable = true
	}
	if events&unix.EPOLLOUT != 0 && !c.writable {
		c.writable = true
		if !c.flush() {
			return
		}
		if c.x != nil {
			c.x.resumeDown()
		}
	}
	switch {
	case c.mode == clientClosed:
	case c.x == nil:
		c.serve()
	case c.readable:
		c.x.resumeUp()
	}
}

// expired: the client's deadline is over.
func (c *client) expired() {
	if due := c.at + clientWriteMilli; c.out.len() > 0 && c.w.now < due {
		c.w.wheel.set(&c.timer, due) // it has taken something since
		return
	}
	switch {
	case c.mode == clientLinger:
		c.close() // the kernel may still have the end of the answer to deliver
	case c.mode == clientLast, c.out.len() > 0:
		c.abort()
	case c.x != nil:
		c.x.clientExpired()
	case c.in.len() > 0:
		c.refuse(errHeadTimeout)
	default:
		c.close()
	}
}

// read fills p from the socket. It returns 0 if nothing is there now, and -1
// at the end of the stream or after an error.
func (c *client) read(p []byte) int {
	n, e := sysRead(c.fd, p)
	switch {
	case n > 0:
		c.w.local.bytesIn += uint64(n)
		c.w.used += n
		c.at = c.w.now
		// A short read means drained (epoll(7), edge-triggered), but an end of
		// stream behind the data gives no second edge.
		c.readable = n == len(p) || c.fin
		return n
	case e == unix.EAGAIN:
		c.readable = false
		return 0
	}
	c.readable, c.fin = false, true
	return -1
}

// abort closes with RST; a running exchange is cancelled.
func (c *client) abort() {
	if c.mode == clientClosed {
		return
	}
	sysReset(c.fd)
	c.close()
}

// close closes the connection and cancels a running exchange.
func (c *client) close() {
	if c.mode == clientClosed {
		return
	}
	c.mode = clientClosed
	w := c.w
	if x := c.x; x != nil {
		x.cancel()
	}
	w.detach(c.fd)
	sysClose(c.fd)
	w.wheel.stop(&c.timer)
	c.in.reset(&w.buffers)
	c.out.reset(&w.buffers)
	w.clients--
	w.closed = append(w.closed, c)
}
