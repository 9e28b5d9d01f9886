package rig

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Client is a connection that sends exactly the given bytes and reads answers
// strictly.
type Client struct {
	*net.TCPConn
	r *bufio.Reader
	t testing.TB
}

// Dial connects to addr; the connection is closed with the test.
func Dial(t testing.TB, addr netip.AddrPort) *Client {
	t.Helper()
	c, err := connect(addr)
	if err != nil {
		t.Fatal(err)
	}
	c.t = t
	t.Cleanup(func() { c.Close() })
	return c
}

// connect returns a client without a test: only its Try methods may be used.
func connect(addr netip.AddrPort) (*Client, error) {
	conn, err := net.DialTimeout("tcp", addr.String(), Deadline)
	if err != nil {
		return nil, err
	}
	return &Client{TCPConn: conn.(*net.TCPConn), r: bufio.NewReader(conn)}, nil
}

// Lines joins lines with CRLF and ends the head with an empty one.
func Lines(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }

// Get returns a GET request in bytes.
func Get(host, target string, fields ...string) string {
	return Lines(append([]string{"GET " + target + " HTTP/1.1", "Host: " + host}, fields...)...)
}

// Send writes bytes; the peer must take them.
func (c *Client) Send(bytes string) {
	c.t.Helper()
	if err := c.TrySend(bytes); err != nil {
		c.t.Fatalf("send %.60q: %v", bytes, err)
	}
}

// TrySend writes bytes and returns what went wrong: a peer that refuses a
// message may close before all of it was sent.
func (c *Client) TrySend(bytes string) error {
	c.SetWriteDeadline(time.Now().Add(Deadline))
	_, err := io.WriteString(c.TCPConn, bytes)
	return err
}

// Read reads the final answer to a request with method; it must be complete.
func (c *Client) Read(method string) *Message {
	c.t.Helper()
	m, err := c.TryRead(method, Deadline)
	if err != nil {
		c.t.Fatalf("read answer: %v (so far: %+v)", err, m)
	}
	return m
}

// TryRead reads the final answer to a request with method. What came before an
// error is returned with it. io.EOF means: closed before the first byte.
func (c *Client) TryRead(method string, within time.Duration) (*Message, error) {
	c.SetReadDeadline(time.Now().Add(within))
	var interim []*Message
	for {
		m, err := c.readAnswerHead()
		if err != nil {
			return m, err
		}
		if m.Status >= 100 && m.Status < 200 && m.Status != 101 {
			interim = append(interim, m)
			continue
		}
		m.Interim = interim
		return m, c.readBody(m, method)
	}
}

// ReadHead reads one head, interim or final, and no body.
func (c *Client) ReadHead() *Message {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(Deadline))
	m, err := c.readAnswerHead()
	if err != nil {
		c.t.Fatalf("read head: %v (so far: %+v)", err, m)
	}
	return m
}

func (c *Client) readAnswerHead() (*Message, error) {
	m, err := readHead(c.r)
	if err != nil {
		return m, err
	}
	version, rest, _ := strings.Cut(m.Start, " ")
	code, _, ok := strings.Cut(rest, " ")
	m.Status, err = strconv.Atoi(code)
	if err != nil || !ok || len(code) != 3 || version != "HTTP/1.1" {
		return m, fmt.Errorf("%w: status line %q", errGrammar, m.Start)
	}
	return m, nil
}

func (c *Client) readBody(m *Message, method string) error {
	n, err := m.framing()
	switch {
	case err != nil:
		return err
	case method == "HEAD" || m.Status < 200 || m.Status == 204 || m.Status == 304:
		return nil
	case n == -1:
		return m.readChunks(c.r)
	case n >= 0:
		return m.readLength(c.r, n)
	}
	m.Body, err = io.ReadAll(c.r)
	return err
}

// Reader returns the stream behind what was read so far.
func (c *Client) Reader() io.Reader { return c.r }

// ExpectClosed fails unless the peer closes within d without another byte. A
// reset counts as closed.
func (c *Client) ExpectClosed(d time.Duration) {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(d))
	b, err := c.r.ReadByte()
	switch {
	case err == nil:
		rest, _ := io.ReadAll(io.LimitReader(c.r, 200))
		c.t.Errorf("connection: got %q, want it closed", append([]byte{b}, rest...))
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.t.Errorf("connection still open after %v, want it closed", d)
	case err != io.EOF && !errors.Is(err, syscall.ECONNRESET):
		c.t.Errorf("connection: %v, want it closed", err)
	}
}

// ExpectSilence fails if anything comes, or the connection ends, within d.
func (c *Client) ExpectSilence(d time.Duration) {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(d))
	if b, err := c.r.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("connection: got %q, %v, want silence", b, err)
	}
}

// Do sends one request on a new connection and reads its answer.
func Do(t testing.TB, addr netip.AddrPort, method, request string) *Message {
	t.Helper()
	c := Dial(t, addr)
	defer c.Close()
	c.Send(request)
	return c.Read(method)
}

// TryGet is a GET on a new connection for polls: what goes wrong is returned.
func TryGet(addr netip.AddrPort, host, target string) (*Message, error) {
	c, err := connect(addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.TrySend(Get(host, target)); err != nil {
		return nil, err
	}
	return c.TryRead("GET", Deadline)
}
