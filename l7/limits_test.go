package l7

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirproxy/weir/l7/route"
)

func TestABodyMustKeepAMinimumRate(t *testing.T) {
	for _, c := range []struct {
		name             string
		waited, wait, in int64 // ms before, ms now, bytes so far
		want             bool
	}{
		{"in its grace", 20_000, 9_999, 0, false},
		{"fast enough", 39_000, 1_000, 10_240, false},
		{"a byte short", 39_000, 1_000, 10_239, true},
		{"after a long wait", 0, 60_000, 100, true},
	} {
		x := exchange{w: &Worker{now: 1_000_000}, bodyWaited: c.waited, bodyIn: c.in}
		x.waitFrom = x.w.now - c.wait
		if got := x.tooSlow(); got != c.want {
			t.Errorf("%s: tooSlow after %d ms with %d bytes = %v, want %v", c.name, c.waited+c.wait, c.in, got, c.want)
		}
	}
	x := exchange{w: &Worker{now: 1_000_000}, bodyWaited: 90_000}
	if x.tooSlow() {
		t.Error("time that was not spent waiting for the client counts")
	}
}

func answers(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp
}

func TestAnEndpointConnectionServesSoManyRequests(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(answers))
	defer origin.Close()
	b := serve(t, Config{Upstream: UpstreamLimits{RequestsMax: 3}}, nil, addrOf(origin))
	for range 9 {
		get(t, b.url)
	}
	if n := b.cluster.Stats.Shards[0].Opened.Load(); n != 3 {
		t.Errorf("%d connections for 9 requests, want 3", n)
	}
}

func TestAnEndpointConnectionLivesSoLong(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-time.After(20 * time.Millisecond)
		answers(w, r)
	}))
	defer origin.Close()
	b := serve(t, Config{Upstream: UpstreamLimits{LifetimeMax: 10 * time.Millisecond}}, nil, addrOf(origin))
	for range 3 {
		get(t, b.url)
	}
	if n := b.cluster.Stats.Shards[0].Opened.Load(); n != 3 {
		t.Errorf("%d connections for 3 requests that outlive them, want 3", n)
	}
}

func TestIdleEndpointConnectionsClose(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(answers))
	defer origin.Close()
	b := serve(t, Config{Upstream: UpstreamLimits{IdleTimeout: 50 * time.Millisecond}}, nil, addrOf(origin))
	get(t, b.url)
	for deadline := time.Now().Add(5 * time.Second); b.server.Stats().Workers[0].UpstreamOpen != 0; {
		if time.Now().After(deadline) {
			t.Fatal("an idle connection stays open")
		}
		<-time.After(5 * time.Millisecond)
	}
}

func TestAClientConnectionEndsPolitely(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-time.After(600 * time.Millisecond)
		answers(w, r)
	}))
	defer origin.Close()
	for name, limits := range map[string]Limits{"requests": {RequestsMax: 2}, "lifetime": {LifetimeMax: 500 * time.Millisecond}} {
		b := serve(t, Config{Limits: limits}, nil, addrOf(origin))
		first, second := get(t, b.url), get(t, b.url)
		if first.Close || !second.Close {
			t.Errorf("%s: the first answer closes: %v, the second: %v; want only the second", name, first.Close, second.Close)
		}
	}
}

func TestALingeringClientIsNotReadForEver(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(answers))
	defer origin.Close()
	b := serve(t, Config{}, func(p *route.Policy) { p.BodyBytesMax = 10 }, addrOf(origin))
	c, err := net.Dial("tcp", b.server.Addresses()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != 413 || !resp.Close {
		t.Fatalf("answer %v, %v; want 413 and close", resp, err)
	}
	sent, piece := 0, make([]byte, 64<<10)
	for sent < 100_000_000 && err == nil {
		var n int
		n, err = c.Write(piece)
		sent += n
	}
	if err == nil {
		t.Fatal("100 MB were taken after the refusal")
	}
	if in := b.server.Stats().Workers[0].BytesIn; in > 2*lingerBytes {
		t.Errorf("%d bytes were read, want about %d at most", in, lingerBytes)
	}
}
