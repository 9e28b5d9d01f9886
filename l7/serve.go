package l7

import "github.com/weirproxy/weir/l7/http1"

// serve parses and starts requests until one runs, input is missing, or output
// waits. It never runs inside itself: an exchange that ends at once is continued
// by the loop here.
func (c *client) serve() {
	if c.serving {
		return
	}
	c.serving = true
	for c.x == nil && c.step() {
		if c.w.spent() {
			c.yield()
			break
		}
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
		return c.mode == clientLinger
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

// queue has serve called before the next event, unless it runs or is due anyway.
func (c *client) queue() {
	if !c.queued && !c.serving && !c.yielded && c.mode != clientClosed {
		c.queued = true
		c.w.runnable = append(c.w.runnable, c)
	}
}
