package l7

import "golang.org/x/sys/unix"

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
