package l7

import (
	"io"
	"sync"
	"testing"
	"time"
)

// TestAWorkerKeepsSoManyIdleConnections: of the others each closes when its
// request is done.
func TestAWorkerKeepsSoManyIdleConnections(t *testing.T) {
	const clients, keep = 6, 2
	all, held := make(chan struct{}, clients), make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	e := newEndpoint(t, func(w *wire) {
		if _, ok := w.head(); !ok {
			return
		}
		all <- struct{}{}
		<-held
		io.WriteString(w.TCPConn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		w.head()
	})
	t.Cleanup(release)
	b := serve(t, Config{Upstream: UpstreamLimits{IdleMax: keep}}, nil, e.addr)
	var conns []*wire
	for range clients {
		w := b.connect(t)
		w.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
		conns = append(conns, w)
	}
	for range clients {
		<-all
	}
	release()
	for _, w := range conns {
		w.answer("GET")
	}
	await(t, patience, "2 connections are left", func() bool {
		s := b.server.Stats().Workers[0]
		_, open := e.count()
		return s.UpstreamIdle == keep && s.UpstreamOpen == keep && open == keep
	})
}

// TestARefusedEndpointRests: while others work, and until its slice changes, it
// is asked no more.
func TestARefusedEndpointRests(t *testing.T) {
	bad, good := newEndpoint(t, hello("bad")), newEndpoint(t, hello("good"))
	bad.stop()
	b := serve(t, Config{}, nil, bad.addr, good.addr)
	w := b.connect(t)
	ask := func(n int) (names map[string]int) {
		t.Helper()
		names = map[string]int{}
		for range n {
			r, name := w.get()
			if r.StatusCode != 200 {
				t.Fatalf("answer %d, want 200", r.StatusCode)
			}
			names[name]++
		}
		return names
	}
	start := time.Now()
	ask(20)
	s := &b.cluster.Stats.Shards[0]
	if s.ConnectErrors.Load() != 1 || s.Ejections.Load() != 1 || s.Retries.Load() != 1 {
		t.Errorf("%d connects refused, %d ejections, %d retries in 20 requests; want one each",
			s.ConnectErrors.Load(), s.Ejections.Load(), s.Retries.Load())
	}
	back := newEndpointAt(t, bad.addr, hello("bad"))
	got := ask(20)
	if n, _ := back.count(); n != 0 && time.Since(start) < 5*time.Second {
		t.Errorf("the endpoint was asked again after %v: %v", time.Since(start), got)
	}
	more := newEndpoint(t, hello("more"))
	b.endpoints(bad.addr, good.addr, more.addr)
	if got := ask(21); got["bad"] != 7 || got["good"] != 7 || got["more"] != 7 {
		t.Errorf("after a change of the slice: %v, want 7 answers of each", got)
	}
}

// TestTheLastEndpointIsAskedAlways: there is no other to answer instead.
func TestTheLastEndpointIsAskedAlways(t *testing.T) {
	e := newEndpoint(t, hello("last"))
	e.stop()
	b := serve(t, Config{}, nil, e.addr)
	w := b.connect(t)
	for range 3 {
		if r, _ := w.get(); r.StatusCode != 502 {
			t.Errorf("answer %d while the endpoint refuses, want 502", r.StatusCode)
		}
	}
	newEndpointAt(t, e.addr, hello("last"))
	if r, name := w.get(); r.StatusCode != 200 || name != "last" {
		t.Errorf("answer %d %q when it is back, want 200", r.StatusCode, name)
	}
}
