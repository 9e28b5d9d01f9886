package l7

import (
	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/l7/http1"
)

// uploadRead is what one read of a request body takes: with its chunk framing it
// fits a 64 KiB buffer.
const uploadRead = requestRead - 128

// resumeUp continues the request: the client has sent something or the endpoint
// takes something.
func (x *exchange) resumeUp() {
	if x.phase == tunnelled {
		x.copyUp()
	} else {
		x.pumpUp()
	}
	x.arm()
}

// pumpUp moves the request from the client to the endpoint until one of them
// blocks. While no endpoint is connected it reads no more than can be replayed.
func (x *exchange) pumpUp() {
	for x.c != nil {
		b := x.b
		if b != nil && (x.writeBroken || !x.flushUp()) {
			return
		}
		if x.b != b || x.received {
			return
		}
		if x.replay && x.out.len() >= replayMax {
			if b == nil {
				return
			}
			x.replay = false
			x.out.reset(&x.w.buffers)
			x.sent = 0
		}
		if x.w.spent() {
			x.c.yield()
			return
		}
		if !x.readBody() {
			return
		}
	}
}

// readBody takes what the client has sent of the body and reports whether it did.
func (x *exchange) readBody() bool {
	w, c := x.w, x.c
	data, scratch := c.in.bytes(), false
	if len(data) == 0 || c.scanned == len(data) {
		if !c.readable {
			c.register()
			if !x.expect {
				x.waitFrom = w.now
			}
			return false
		}
		if !c.fill(&data, &scratch) {
			return false
		}
	}
	n, err := x.takeBody(data)
	x.expect = false // it didn't wait, or no more
	if err == nil && x.tooSlow() && !x.received {
		err = errBodyTooSlow
	}
	if err != nil {
		x.badBody(err)
		return false
	}
	x.b4 = w.now // the endpoint had nothing to take until now
	c.keep(data, n, scratch)
	// What is left is part of a trailer section, or the next request.
	c.scanned = 0
	if !x.received {
		c.scanned = c.in.len()
	}
	return true
}

// A body may come slowly for slowGrace ms in all; after that it must have come at
// slowRate bytes a second on average. Only time spent waiting for the client counts.
const (
	slowGrace = 30_000
	slowRate  = 1024
)

// tooSlow reports whether the client sends its body too slowly, at the end of a
// wait for it.
func (x *exchange) tooSlow() bool {
	if x.waitFrom == 0 {
		return false
	}
	x.bodyWaited += x.w.now - x.waitFrom
	x.waitFrom = 0
	over := x.bodyWaited - slowGrace
	return over > 0 && x.bodyIn < over*slowRate/1000
}

// fill reads from the client: into scratch, or behind what in holds already. It
// returns false if nothing came; a client that has gone is closed.
func (c *client) fill(data *[]byte, scratch *bool) bool {
	w := c.w
	var n int
	if c.in.len() == 0 {
		*scratch = true
		n = c.read(w.up[:uploadRead])
		*data = w.up[:max(n, 0)]
	} else {
		if !c.in.room(&w.buffers, bufferMin) {
			c.abort()
			return false
		}
		n = c.read(c.in.buf[c.in.end:])
		c.in.end += max(n, 0)
		*data = c.in.bytes()
	}
	if n < 0 {
		c.close() // the request can't be completed
		return false
	}
	return n > 0
}

// badBody ends an exchange whose request body is refused. The endpoint's
// connection is reset: it must not take the part for the whole.
func (x *exchange) badBody(err *http1.Error) {
	x.dropTry()
	x.closeAfter = true
	x.w.count(err)
	x.answer(err)
}

// flushUp writes what waits for the endpoint and reports whether that was all.
func (x *exchange) flushUp() bool {
	b, w := x.b, x.w
	if p := x.out.bytes()[x.sent:]; len(p) > 0 {
		if !b.writable {
			return false
		}
		n, e := sysWrite(b.fd, p)
		if e == unix.EAGAIN {
			b.writable = false
			return false
		}
		if e != 0 {
			// It may have answered, or refused, before it closed.
			x.writeBroken = true
			b.wrecked(e)
			x.resumeDown()
			return false
		}
		x.wrote = true
		x.b4 = w.now
		x.sent += n
		if n < len(p) {
			b.writable = false
			return false
		}
	}
	if x.received && x.sentAt == 0 {
		x.sentAt = w.micro
	}
	if !x.replay {
		x.out.reset(&w.buffers)
		x.sent = 0
	}
	return true
}
