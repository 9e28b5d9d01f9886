package l7

import (
	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/l7/http1"
)

// switches reports whether the endpoint's 101 accepts what the client offered
// (RFC 9110, 7.8; RFC 6455, 4.1).
func (x *exchange) switches(r *http1.Response) bool {
	if x.upgrade == "" || !equalFoldText(r.Upgrade, x.upgrade) {
		return false
	}
	return !equalFoldText([]byte("websocket"), x.upgrade) || string(r.WebSocketAccept) == string(x.accept[:])
}

func equalFoldText(a []byte, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i]|0x20 != b[i]|0x20 {
			return false
		}
	}
	return true
}

// startTunnel sends the 101 and copies from now on. What the client has sent
// behind its head was held until here.
func (x *exchange) startTunnel(r *http1.Response) {
	w, c := x.w, x.c
	x.phase = tunnelled
	x.status = r.Status
	x.replay = false
	x.out.consume(&w.buffers, x.sent)
	x.sent = 0
	x.closeAfter = true
	c.scanned = 0
	c.write(x.switchHead(r))
	c.register()
}

// copyUp moves bytes from the client to the endpoint until one of them blocks.
func (x *exchange) copyUp() {
	w := x.w
	for x.c != nil {
		c, b := x.c, x.b
		if x.upDone {
			return
		}
		for x.out.len() > 0 {
			n, blocked := x.put(b, x.out.bytes())
			x.out.consume(&w.buffers, n)
			if blocked {
				return
			}
		}
		data, scratch := c.in.bytes(), false
		if len(data) == 0 {
			if !c.readable {
				return
			}
			if w.spent() {
				c.yield()
				return
			}
			n := c.read(w.up)
			if n < 0 {
				x.half(&x.upDone, b.fd, x.downDone)
				return
			}
			if n == 0 {
				return
			}
			data, scratch = w.up[:n], true
		}
		n, _ := x.put(b, data)
		if x.upDone {
			return
		}
		x.out.append(&w.buffers, data[n:])
		if !scratch {
			c.in.reset(&w.buffers)
		}
	}
}

// put writes to the endpoint; blocked: it takes no more at present, or never: then
// this direction is done, and the other ends with what the endpoint has sent.
func (x *exchange) put(b *backend, p []byte) (n int, blocked bool) {
	if !b.writable {
		return 0, true
	}
	n, e := sysWrite(b.fd, p)
	switch {
	case e == unix.EAGAIN:
		b.writable = false
		return 0, true
	case e != 0:
		x.out.reset(&x.w.buffers)
		b.wrecked(e)
		if x.half(&x.upDone, b.fd, x.downDone); x.c != nil {
			x.copyDown()
		}
		return 0, true
	}
	x.b4 = x.w.now
	if n < len(p) {
		b.writable = false
	}
	return n, n < len(p)
}

// copyDown moves bytes from the endpoint to the client until one of them blocks.
func (x *exchange) copyDown() {
	w := x.w
	for x.c != nil && x.c.out.len() == 0 {
		c, b := x.c, x.b
		if b.in.len() > 0 {
			c.write(b.in.bytes())
			b.in.reset(&w.buffers)
			continue
		}
		if !b.readable || x.downDone {
			return
		}
		if w.spent() {
			c.yield()
			return
		}
		n := b.read(w.down)
		switch {
		case n == -1:
			x.half(&x.downDone, c.fd, x.upDone)
			return
		case n < 0:
			c.abort()
			return
		case n == 0:
			return
		}
		x.b4 = w.now
		x.bodyOut += int64(n)
		c.write(w.down[:n])
	}
}

// half passes the end of one direction on, and ends the tunnel when both have
// ended.
func (x *exchange) half(done *bool, to int32, other bool) {
	if *done {
		return
	}
	*done = true
	sysShutdownWrite(to)
	if other {
		x.end()
	}
}
