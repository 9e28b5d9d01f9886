package l7

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirproxy/weir/l7/route"
)

// TestAnEndpointThatReadsSlowlyIsNotDead: its kernel acknowledges what it has room
// for; the rest waits here.
func TestAnEndpointThatReadsSlowlyIsNotDead(t *testing.T) {
	slow := func(w *wire) {
		w.SetReadBuffer(32 << 10)
		if _, ok := w.head(); !ok {
			return
		}
		time.Sleep(4 * ackMilli * time.Millisecond)
		io.CopyN(io.Discard, w.r, 300_000)
		io.WriteString(w.TCPConn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
	a, b := newEndpoint(t, slow), newEndpoint(t, slow)
	bed := serve(t, Config{}, nil, a.addr, b.addr)
	w := bed.connect(t)
	w.send("PUT / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("x", 300_000))
	if r, _ := w.answer("PUT"); r.StatusCode != 200 {
		t.Errorf("answer %d, want 200", r.StatusCode)
	}
	s := &bed.cluster.Stats.Shards[0]
	if s.Ejections.Load() != 0 || s.Retries.Load() != 0 {
		t.Errorf("%d ejections and %d retries, want none", s.Ejections.Load(), s.Retries.Load())
	}
}

// TestAClientThatWaitsFor100IsNotSlow: the endpoint is, and its deadline counts.
func TestAClientThatWaitsFor100IsNotSlow(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
	limits := Config{Limits: Limits{BodyTimeout: 50 * time.Millisecond}}
	t.Run("late 100", func(t *testing.T) {
		e := newEndpoint(t, func(w *wire) {
			w.head()
			time.Sleep(250 * time.Millisecond)
			io.WriteString(w.TCPConn, "HTTP/1.1 100 Continue\r\n\r\n")
			io.CopyN(io.Discard, w.r, 2)
			io.WriteString(w.TCPConn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		})
		w := serve(t, limits, nil, e.addr).connect(t)
		w.send(head)
		if r, _ := w.answer("POST"); r.StatusCode != 100 {
			t.Fatalf("answer %d, want 100", r.StatusCode)
		}
		w.send("hi")
		if r, _ := w.answer("POST"); r.StatusCode != 200 {
			t.Errorf("answer %d, want 200", r.StatusCode)
		}
	})
	t.Run("no 100", func(t *testing.T) {
		e := newEndpoint(t, func(w *wire) { w.head(); w.head() })
		w := serve(t, limits, func(p *route.Policy) { p.ReadTimeout = 200 * time.Millisecond }, e.addr).connect(t)
		w.send(head)
		if r, _ := w.answer("POST"); r.StatusCode != 504 {
			t.Errorf("answer %d, want 504", r.StatusCode)
		}
	})
	t.Run("a part of the body at once", func(t *testing.T) {
		var asked atomic.Int32
		holds := func(w *wire) {
			w.head()
			asked.Add(1)
			w.head()
		}
		e, other := newEndpoint(t, holds), newEndpoint(t, holds)
		w := serve(t, limits, func(p *route.Policy) { p.ReadTimeout = 300 * time.Millisecond }, e.addr, other.addr).connect(t)
		w.send(strings.Replace(head, "POST", "PUT", 1) + "h")
		if r, _ := w.answer("PUT"); r.StatusCode != 408 || asked.Load() != 1 {
			t.Errorf("answer %d after %d endpoints were asked, want 408 after one", r.StatusCode, asked.Load())
		}
	})
	t.Run("no body after 100", func(t *testing.T) {
		e := newEndpoint(t, func(w *wire) {
			w.head()
			io.WriteString(w.TCPConn, "HTTP/1.1 100 Continue\r\n\r\n")
			w.head()
		})
		w := serve(t, limits, nil, e.addr).connect(t)
		w.send(head)
		w.answer("POST")
		if r, _ := w.answer("POST"); r.StatusCode != 408 {
			t.Errorf("answer %d, want 408", r.StatusCode)
		}
	})
}
