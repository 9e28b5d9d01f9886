package l7

// finish ends a connection whose last answer is written. If the client may still
// be sending, a close now would make its kernel throw the answer away (RFC 9112,
// 9.6), so the connection lingers. Whether something lies there is asked, not
// remembered: it may have come since the last event, or without one.
func (c *client) finish() {
	if c.in.len() == 0 && !c.unread && (c.fin && !c.readable || c.read(c.w.up) <= 0) {
		c.close()
		return
	}
	c.mode = clientLinger
	c.in.reset(&c.w.buffers)
	sysShutdownWrite(c.fd)
	c.w.wheel.set(&c.timer, c.w.now+lingerMilli)
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
