package load

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// conn is one connection and its running request.
type conn struct {
	fd      int
	opening bool
	running bool
	since   time.Time // when the running request was due
	head    []byte    // of the answer, as far as it has come
	missing int64     // bytes of the body still to come, once the head is there
	inBody  bool

	complete bool // in close mode: the answer is there, the FIN is not
	last     bool // the answer says that the connection closes behind it
}

// open connects c anew; the request follows when the connection stands.
func (l *loop) open(c *conn) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make socket: %w", err)
	}
	*c = conn{fd: fd, opening: true, since: time.Now(), head: c.head[:0]}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("set TCP_NODELAY: %w", err)
	}
	addr := &unix.SockaddrInet4{Port: int(l.plan.Addr.Port()), Addr: l.plan.Addr.Addr().As4()}
	if err := unix.Connect(fd, addr); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return fmt.Errorf("connect to %s: %w", l.plan.Addr, err)
	}
	index := 0
	for l.conns[index] != c {
		index++
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLET, Fd: int32(index)}
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("register socket: %w", err)
	}
	return nil
}

// reopen replaces a connection that ended.
func (l *loop) reopen(c *conn) error {
	unix.Close(c.fd)
	c.fd = -1
	return l.open(c)
}

// fail counts an error and starts the connection anew.
func (l *loop) fail(c *conn) error {
	l.result.Errors++
	return l.replace(c)
}

// replace starts a connection anew that may be free.
func (l *loop) replace(c *conn) error {
	for i, f := range l.free {
		if f == c {
			l.free = append(l.free[:i], l.free[i+1:]...)
			break
		}
	}
	return l.reopen(c)
}

// send writes the next request on c. Requests are far smaller than a socket's
// buffer, so a partial write means that the connection is broken; the read
// that follows finds that out.
func (l *loop) send(c *conn, due time.Time) {
	request := l.requests[l.next]
	l.next = (l.next + 1) % len(l.requests)
	c.since, c.running, c.inBody, c.last, c.head = due, true, false, false, c.head[:0]
	if n, err := unix.Write(c.fd, request); err != nil || n != len(request) {
		unix.Shutdown(c.fd, unix.SHUT_RDWR)
	}
}

func (l *loop) ready(c *conn, events uint32) error {
	if c.opening {
		if events&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
			return l.fail(c)
		}
		if events&unix.EPOLLOUT == 0 {
			return nil
		}
		c.opening = false
		if l.plan.Rate == 0 {
			l.send(c, c.since)
		} else {
			l.free = append(l.free, c)
			l.dispatch()
		}
		return nil
	}
	for {
		n, err := unix.Read(c.fd, l.buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case n == 0 && err == nil && c.complete:
			return l.finish(c)
		case n == 0 && err == nil && !c.running: // the proxy may close what is idle
			return l.replace(c)
		case err != nil || n == 0 || c.complete:
			return l.fail(c)
		}
		done, ok := l.take(c, l.buf[:n])
		if !ok {
			return l.fail(c)
		}
		if done && !l.plan.Close {
			return l.finish(c)
		}
		c.complete = done // the proxy's FIN is part of the exchange
		if !done && n < len(l.buf) {
			return nil // drained; the edge will come again
		}
	}
}

// finish counts a complete exchange and starts what follows.
func (l *loop) finish(c *conn) error {
	l.latencies = append(l.latencies, int64(time.Since(c.since)))
	l.result.Requests++
	c.running = false
	switch {
	case l.plan.Close || c.last:
		return l.reopen(c)
	case l.plan.Rate == 0:
		l.send(c, time.Now())
	default:
		l.free = append(l.free, c)
		l.dispatch()
	}
	return nil
}

// take consumes received bytes; ok is false if they are not the wanted answer.
func (l *loop) take(c *conn, b []byte) (done, ok bool) {
	if !c.running {
		return false, false
	}
	if !c.inBody {
		c.head = append(c.head, b...)
		end := bytes.Index(c.head, []byte("\r\n\r\n"))
		if end < 0 {
			return false, len(c.head) < 64<<10
		}
		length, valid := parse(c.head[:end+2])
		if !valid || length != l.plan.BodyBytes {
			return false, false
		}
		c.inBody, c.missing = true, length
		c.last = bytes.Contains(bytes.ToLower(c.head[:end+2]), []byte("\r\nconnection: close\r\n"))
		b = c.head[end+4:]
	}
	c.missing -= int64(len(b))
	return c.missing == 0, c.missing >= 0
}

// parse returns the Content-Length of a 200 answer.
func parse(head []byte) (length int64, ok bool) {
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) {
		return 0, false
	}
	for line := range bytes.Lines(head) {
		const name = "content-length:"
		if len(line) > len(name) && bytes.EqualFold(line[:len(name)], []byte(name)) {
			v, err := strconv.ParseInt(string(bytes.TrimSpace(line[len(name):])), 10, 64)
			return v, err == nil
		}
	}
	return 0, false
}
