package rig

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Exchange is one request in the hands of a handler. When the handler returns,
// a body that it has not read is read, and the next request is awaited.
type Exchange struct {
	*Request
	TCP     *net.TCPConn
	backend *Recorder
	tap     *tap
	r       *bufio.Reader
	read    bool
	closed  bool
}

// taken returns the raw bytes that were consumed since the last call.
func (x *Exchange) taken() string {
	n := len(x.tap.raw) - x.r.Buffered()
	if n < 0 {
		return "" // more than was kept
	}
	raw := string(x.tap.raw[:n])
	x.tap.raw = append(x.tap.raw[:0], x.tap.raw[n:]...)
	return raw
}

// ReadBody reads the request's body into x.Body, once.
func (x *Exchange) ReadBody() error {
	if x.read {
		return nil
	}
	x.read = true
	n, err := x.framing()
	switch {
	case err != nil:
	case n == -1:
		err = x.readChunks(x.r)
	case n > 0:
		err = x.readLength(x.r, n)
	}
	x.backend.mu.Lock()
	x.Request.Raw += x.taken()
	x.backend.mu.Unlock()
	return err
}

// Stream returns the stream behind the head, for a handler that reads a body (or
// a tunnel) on its own.
func (x *Exchange) Stream() io.Reader {
	x.read = true
	return x.r
}

// Write sends bytes as they are. Errors show on the other side.
func (x *Exchange) Write(bytes string) {
	io.WriteString(x.TCP, bytes)
}

// Answer reads the request's body, then answers with status and a body with
// Content-Length. fields are whole lines without CRLF.
func (x *Exchange) Answer(status int, body string, fields ...string) {
	if x.ReadBody() != nil {
		x.Close()
		return
	}
	head := []string{fmt.Sprintf("HTTP/1.1 %d Status", status), fmt.Sprintf("Content-Length: %d", len(body))}
	text := Lines(append(head, fields...)...)
	if strings.HasPrefix(x.Start, "HEAD ") {
		body = ""
	}
	x.Write(text + body)
}

// Close ends the connection with FIN.
func (x *Exchange) Close() {
	x.closed = true
	x.TCP.Close()
}

// Reset ends the connection with RST.
func (x *Exchange) Reset() {
	x.closed = true
	x.TCP.SetLinger(0)
	x.TCP.Close()
}

// Gone waits until the peer has closed its side, for at most d, and returns the
// bytes that still came. ok is false if it did not close.
func (x *Exchange) Gone(d time.Duration) (rest []byte, ok bool) {
	x.TCP.SetReadDeadline(time.Now().Add(d))
	defer x.TCP.SetReadDeadline(time.Time{})
	rest, err := io.ReadAll(x.Stream())
	if e, isNet := err.(net.Error); isNet && e.Timeout() {
		return rest, false
	}
	return rest, true
}
