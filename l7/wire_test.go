package l7

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait for something that must happen.
const patience = 5 * time.Second

// await polls until ok.
func await(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// wire is one end of a connection: exact bytes out, messages in.
type wire struct {
	*net.TCPConn
	r *bufio.Reader
	t testing.TB
}

func newWire(t testing.TB, c net.Conn) *wire {
	return &wire{TCPConn: c.(*net.TCPConn), r: bufio.NewReader(c), t: t}
}

// connect returns a client's connection; it is closed with the test.
func (b *bed) connect(t testing.TB) *wire {
	t.Helper()
	c, err := net.DialTimeout("tcp", b.server.Addresses()[0].String(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return newWire(t, c)
}

func (w *wire) send(s string) {
	w.t.Helper()
	w.SetWriteDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(w.TCPConn, s); err != nil {
		w.t.Fatalf("send %.40q: %v", s, err)
	}
}

// answer reads an answer to a request with method; its Body is read and holds
// text.
func (w *wire) answer(method string) (*http.Response, string) {
	w.t.Helper()
	w.SetReadDeadline(time.Now().Add(patience))
	r, err := http.ReadResponse(w.r, &http.Request{Method: method})
	if err != nil {
		w.t.Fatalf("answer: %v", err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.t.Fatalf("answer %d: body: %v after %d bytes", r.StatusCode, err, len(body))
	}
	return r, string(body)
}

// get sends a GET and reads its answer.
func (w *wire) get() (*http.Response, string) {
	w.t.Helper()
	w.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
	return w.answer("GET")
}

// ended fails unless the stream ends in order within patience, without another
// byte.
func (w *wire) ended() {
	w.t.Helper()
	w.SetReadDeadline(time.Now().Add(patience))
	if b, err := w.r.ReadByte(); err != io.EOF {
		w.t.Errorf("read %q, %v; want the end of the stream", b, err)
	}
}

// head reads a request's head; ok is false if the stream ends before.
func (w *wire) head() (string, bool) {
	var b strings.Builder
	for {
		line, err := w.r.ReadString('\n')
		if err != nil {
			return b.String(), false
		}
		if b.WriteString(line); line == "\r\n" {
			return b.String(), true
		}
	}
}

// endpoint is a listener that hands each connection to a function.
type endpoint struct {
	addr    string
	l       net.Listener
	running sync.WaitGroup

	mu       sync.Mutex
	open     map[net.Conn]bool
	accepted int
}

// newEndpoint listens until the test ends; then its connections are closed, and
// serve must return.
func newEndpoint(t testing.TB, serve func(*wire)) *endpoint {
	t.Helper()
	return newEndpointAt(t, "127.0.0.1:0", serve)
}

func newEndpointAt(t testing.TB, addr string, serve func(*wire)) *endpoint {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{addr: l.Addr().String(), l: l, open: map[net.Conn]bool{}}
	e.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			e.mu.Lock()
			e.accepted++
			e.open[c] = true
			e.mu.Unlock()
			e.running.Go(func() {
				serve(newWire(t, c))
				c.Close()
				e.mu.Lock()
				delete(e.open, c)
				e.mu.Unlock()
			})
		}
	})
	t.Cleanup(e.stop)
	return e
}

// stop closes the listener and all connections.
func (e *endpoint) stop() {
	e.l.Close()
	e.mu.Lock()
	for c := range e.open {
		c.Close()
	}
	e.mu.Unlock()
	e.running.Wait()
}

// count returns how many connections were accepted, and how many are open.
func (e *endpoint) count() (accepted, open int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.accepted, len(e.open)
}

// hello answers every request, which has no body, with name.
func hello(name string) func(*wire) {
	answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(name), name)
	return func(w *wire) {
		for {
			if _, ok := w.head(); !ok {
				return
			}
			io.WriteString(w.TCPConn, answer)
		}
	}
}
