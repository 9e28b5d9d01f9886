package l7

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/weirproxy/weir/l7/route"
)

func TestAllConnectsHang(t *testing.T) {
	const after, timeout = 50 * time.Millisecond, 300 * time.Millisecond
	for _, endpoints := range []int{2, 4} {
		var addrs []string
		for range endpoints {
			addrs = append(addrs, hangingAddr(t))
		}
		b := serve(t, Config{Upstream: UpstreamLimits{HedgeAfter: after}}, func(p *route.Policy) { p.ConnectTimeout = timeout }, addrs...)
		w := b.connect(t)
		start := time.Now()
		r, text := w.get()
		if took := time.Since(start); r.StatusCode != 504 || took < timeout || took > 3*timeout {
			t.Errorf("%d endpoints: %d %q after %v, want 504 after about %v", endpoints, r.StatusCode, text, took, timeout)
		}
		await(t, patience, "no connect is under way", func() bool { return b.server.Stats().Workers[0].UpstreamOpen == 0 })
	}
}

// TestAHedgeIsATry: the policy's only one hangs.
func TestAHedgeIsATry(t *testing.T) {
	good := newEndpoint(t, hello("good"))
	b := serve(t, Config{Upstream: UpstreamLimits{HedgeAfter: 20 * time.Millisecond}}, func(p *route.Policy) {
		p.ConnectTimeout, p.Tries = 200*time.Millisecond, 1
	}, hangingAddr(t), good.addr)
	w := b.connect(t)
	got := map[int]int{}
	for range 2 {
		r, _ := w.get()
		got[r.StatusCode]++
	}
	if got[504] != 1 || got[200] != 1 {
		t.Errorf("statuses %v, want one 504 and one 200", got)
	}
}

// TestAHedgeThatIsRefusedAtOnceGoesOn: to the next endpoint, and not on waiting for
// the one that hangs.
func TestAHedgeThatIsRefusedAtOnceGoesOn(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0") // sorted behind all others
	if err != nil {
		t.Fatal(err)
	}
	good := &http.Server{Handler: http.HandlerFunc(answers)}
	go good.Serve(l)
	t.Cleanup(func() { good.Close() })
	const unreachable = "224.0.0.1:80" // TCP has no multicast: ENETUNREACH
	b := serve(t, Config{Upstream: UpstreamLimits{HedgeAfter: 50 * time.Millisecond}}, nil,
		hangingAddr(t), unreachable, l.Addr().String())
	start := time.Now()
	r, _ := b.connect(t).get()
	if took := time.Since(start); r.StatusCode != 200 || took > time.Second {
		t.Errorf("answer %d after %v, want 200 within 1 s", r.StatusCode, took)
	}
}

// TestAHangingConnectMakesWay: with no descriptor left for a hedge.
func TestAHangingConnectMakesWay(t *testing.T) {
	e := newEndpoint(t, func(w *wire) {
		for {
			if _, ok := w.head(); !ok {
				return
			}
			time.Sleep(200 * time.Millisecond) // so that its connections are busy meanwhile
			io.WriteString(w.TCPConn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	addrs := []string{hangingAddr(t), e.addr}
	b := serveWith(t, Config{Upstream: UpstreamLimits{HedgeAfter: 50 * time.Millisecond}}, nil,
		func(s *Server) { s.clientsMax, s.descriptorsMax = 4, 8 }, addrs...)
	var conns []*wire
	for range 4 {
		w := b.connect(t)
		w.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
		conns = append(conns, w)
	}
	start := time.Now()
	for _, w := range conns {
		if r, _ := w.answer("GET"); r.StatusCode != 200 {
			t.Errorf("answer %d, want 200", r.StatusCode)
		}
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("it took %v, want less than 1 s", took)
	}
}

// TestRefusalsBesideAConnectThatHangs: each is followed by the next endpoint at once,
// and costs no try.
func TestRefusalsBesideAConnectThatHangs(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0") // sorted behind all others
	if err != nil {
		t.Fatal(err)
	}
	good := &http.Server{Handler: http.HandlerFunc(answers)}
	go good.Serve(l)
	t.Cleanup(func() { good.Close() })
	addrs := []string{hangingAddr(t)}
	for range 6 {
		e := newEndpointAt(t, "127.0.0.2:0", hello("gone"))
		e.stop()
		addrs = append(addrs, e.addr)
	}
	b := serve(t, Config{Upstream: UpstreamLimits{HedgeAfter: 50 * time.Millisecond}}, nil, append(addrs, l.Addr().String())...)
	start := time.Now()
	r, _ := b.connect(t).get()
	if took := time.Since(start); r.StatusCode != 200 || took > 300*time.Millisecond {
		t.Errorf("answer %d after %v, want 200 within 300 ms", r.StatusCode, took)
	}
}

// TestAFullOutageIsNoStorm: endpoints that are known to refuse cost tries.
func TestAFullOutageIsNoStorm(t *testing.T) {
	const endpoints = 20
	var addrs []string
	for range endpoints {
		e := newEndpoint(t, hello("gone"))
		e.stop()
		addrs = append(addrs, e.addr)
	}
	b := serve(t, Config{}, nil, addrs...)
	w := b.connect(t)
	w.get() // finds them all out
	s := &b.cluster.Stats.Shards[0]
	before := s.ConnectErrors.Load()
	const requests = 10
	for range requests {
		if r, _ := w.get(); r.StatusCode != 502 {
			t.Errorf("answer %d, want 502", r.StatusCode)
		}
	}
	if n := s.ConnectErrors.Load() - before; n > 3*requests {
		t.Errorf("%d connects for %d requests, want three each at most", n, requests)
	}
}
