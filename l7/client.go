package l7

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/l7/http1"
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
	if c.registered {
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
	case c.mode == clientLinger, c.mode == clientLast, c.out.len() > 0:
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

// serve parses and starts requests until one runs, input is missing, or output
// waits. It never runs inside itself: an exchange that ends at once is continued
// by the loop here.
func (c *client) serve() {
	if c.serving {
		return
	}
	c.serving = true
	for c.x == nil && c.step() {
	}
	c.serving = false
}

// step does one thing for a client without exchange and reports whether there may
// be more to do.
func (c *client) step() bool {
	w := c.w
	switch {
	case c.mode == clientClosed, c.out.len() > 0:
		return false
	case c.mode == clientLast:
		c.finish()
		return false
	case c.mode == clientLinger:
		return c.discard()
	}
	if c.in.len() > 0 && c.in.len() > c.scanned {
		return c.parse(c.in.bytes(), false)
	}
	if !c.readable {
		c.wait()
		return false
	}
	if c.in.len() > 0 { // the rest of a head: at most the limit and one buffer
		if !c.in.room(&w.buffers, bufferMin) {
			c.refuse(errHeadTooLong)
			return true
		}
		n := c.read(c.in.buf[c.in.end:])
		if n < 0 {
			c.close()
			return false
		}
		c.in.end += n
		return true
	}
	n := c.read(w.up)
	switch {
	case n < 0:
		c.close()
		return false
	case n == 0:
		if c.requests == 0 && !c.registered {
			c.l.misses++
		}
		return true
	}
	if c.requests == 0 && !c.registered {
		c.l.misses = 0
	}
	return c.parse(w.up[:n], true)
}

// parse looks for a head at the front of data, which is c.in or, if scratch, the
// worker's scratch buffer.
func (c *client) parse(data []byte, scratch bool) bool {
	w := c.w
	limits := &w.server.requestLimits
	if c.headAt == 0 {
		c.headAt = w.micro
	}
	n, err := 0, (*http1.Error)(nil)
	if c.scanned > 0 && len(data) < limits.HeadBytes {
		var end int
		if end, err = http1.HeadEnd(data, c.scanned); end == 0 && err == nil {
			c.scanned = len(data)
			return true
		}
	}
	if err == nil {
		n, err = w.request.Parse(data, limits)
	}
	if err != nil {
		c.refuse(err)
		return true
	}
	if n == 0 {
		if c.scanned == 0 {
			w.wheel.set(&c.timer, w.now+w.server.config.Limits.HeadTimeout.Milliseconds())
		}
		if scratch {
			c.in.append(&w.buffers, data)
		}
		c.scanned = len(data)
		return true
	}
	c.scanned = 0
	w.begin(c, data, n, scratch)
	return true
}

// keep takes the first n bytes of data as consumed and keeps the rest in c.in,
// where data lies already if it is not scratch.
func (c *client) keep(data []byte, n int, scratch bool) {
	if scratch {
		c.in.append(&c.w.buffers, data[n:])
	} else {
		c.in.consume(&c.w.buffers, n)
	}
}

// wait prepares for the next event of a client without exchange.
func (c *client) wait() {
	w := c.w
	c.register()
	if c.mode != clientOpen || c.scanned > 0 {
		return // the deadline of the head stays
	}
	idle := w.server.config.Limits.IdleTimeout.Milliseconds()
	if w.draining {
		idle = min(idle, drainIdle)
	}
	w.wheel.set(&c.timer, c.at+idle)
}

// write sends the parts, at most four, in this order, and keeps what the socket
// doesn't take. The caller has seen that out is empty, or adds little.
func (c *client) write(parts ...[]byte) {
	if c.mode == clientClosed {
		return
	}
	total := 0
	for _, p := range parts {
		total += len(p)
	}
	if total == 0 {
		return
	}
	sent := 0
	if c.out.len() == 0 && c.writable {
		var e unix.Errno
		sent, e = c.w.writeParts(c.fd, parts)
		if e != 0 && e != unix.EAGAIN {
			c.broken()
			return
		}
		c.w.local.bytesOut += uint64(sent)
		if c.at = c.w.now; sent == total {
			return
		}
		c.writable = false
	}
	for _, p := range parts {
		if sent >= len(p) {
			sent -= len(p)
			continue
		}
		if !c.out.append(&c.w.buffers, p[sent:]) {
			c.w.server.config.Logger.Error("client is dropped: output beyond its bound", "worker", c.w.id)
			c.broken()
			return
		}
		sent = 0
	}
	c.register()
}

// broken notes that nothing can be written any more; the client is closed when
// the caller is done with it.
func (c *client) broken() {
	c.out.reset(&c.w.buffers)
	c.abort()
}

// flush writes what waits and reports whether that was all.
func (c *client) flush() bool {
	for c.out.len() > 0 {
		n, e := sysWrite(c.fd, c.out.bytes())
		if e == unix.EAGAIN {
			c.writable = false
			return false
		}
		if e != 0 {
			c.broken()
			return false
		}
		c.w.local.bytesOut += uint64(n)
		c.at = c.w.now
		if n < c.out.len() {
			c.writable = false
			c.out.consume(&c.w.buffers, n)
			return false
		}
		c.out.consume(&c.w.buffers, n)
	}
	return c.mode != clientClosed
}

// finish ends a connection whose last answer is written. If the client may still
// be sending, a close now would make its kernel throw the answer away (RFC 9112,
// 9.6), so the connection lingers.
func (c *client) finish() {
	if c.in.len() == 0 && !c.readable && !c.unread {
		c.close()
		return
	}
	c.mode = clientLinger
	c.in.reset(&c.w.buffers)
	sysShutdownWrite(c.fd)
	c.w.wheel.set(&c.timer, c.w.now+lingerMilli)
	c.queue()
}

const (
	lingerMilli = 5000
	lingerBytes = 256 << 10
)

// discard reads and drops what a lingering client still sends.
func (c *client) discard() bool {
	if !c.readable {
		c.register()
		return false
	}
	n := c.read(c.w.up)
	if n < 0 {
		c.close()
		return false
	}
	if c.lingered += n; c.lingered > lingerBytes {
		c.abort()
		return false
	}
	return true
}

// queue has serve called before the next event.
func (c *client) queue() {
	if !c.queued && c.mode != clientClosed {
		c.queued = true
		c.w.runnable = append(c.w.runnable, c)
	}
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

// writeParts is one write or writev.
func (w *Worker) writeParts(fd int32, parts [][]byte) (int, unix.Errno) {
	n := 0
	for _, p := range parts {
		if len(p) == 0 {
			continue
		}
		w.iov[n].Base = &p[0]
		w.iov[n].SetLen(len(p))
		n++
	}
	if n == 1 {
		p := parts[0]
		for _, q := range parts {
			if len(q) > 0 {
				p = q
			}
		}
		return sysWrite(fd, p)
	}
	return sysWritev(fd, w.iov[:n])
}
