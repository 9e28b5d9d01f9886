package l7

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/weirproxy/weir/l7/route"
)

// bench is a running server with one route to backends.
type bed struct {
	server  *Server
	cluster *route.Cluster
	url     string
}

// serve runs a Server with the given backends behind every host until the test
// ends.
func serve(t testing.TB, c Config, policy func(*route.Policy), backends ...string) *bed {
	t.Helper()
	return serveWith(t, c, policy, func(*Server) {}, backends...)
}

// serveWith is serve; prepare is called before the workers run.
func serveWith(t testing.TB, c Config, policy func(*route.Policy), prepare func(*Server), backends ...string) *bed {
	t.Helper()
	c.Addresses = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}
	c.Workers = max(c.Workers, 1)
	c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	if c.DrainTimeout == 0 {
		c.DrainTimeout = 100 * time.Millisecond
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	p := route.DefaultPolicy()
	if policy != nil {
		policy(&p)
	}
	b := &bed{server: s, cluster: route.NewCluster("t/a:80", c.Workers)}
	b.endpoints(backends...)
	table, err := route.NewTable(1, []route.VirtualHost{{Routes: []*route.Route{{
		Path: "/", Kind: route.Prefix, Source: "t/a", Cluster: b.cluster, Policy: &p, Stats: route.NewRouteStats("", "t/a", c.Workers),
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	s.SetTable(table)
	prepare(s)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	b.url = "http://" + s.Addresses()[0].String()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Error("Run did not end")
		}
	})
	return b
}

// only has the server know one host.
func (b *bed) only(t testing.TB, host string) {
	t.Helper()
	old := b.server.Table()
	r := old.Match("", "/")
	table, err := route.NewTable(old.Version+1, []route.VirtualHost{{Name: host, Routes: []*route.Route{r}}})
	if err != nil {
		t.Fatal(err)
	}
	b.server.SetTable(table)
}

func (b *bed) endpoints(addrs ...string) {
	var list []route.Endpoint
	for _, a := range addrs {
		list = append(list, route.Endpoint{Addr: netip.MustParseAddrPort(a)})
	}
	b.cluster.SetEndpoints(route.Listing{Tiers: [][]route.Endpoint{list}})
	b.server.EndpointsChanged()
}

func addrOf(s *httptest.Server) string { return s.Listener.Addr().String() }

func TestBodiesPassUnchangedBothWays(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if r.URL.Query().Has("chunked") {
			w.WriteHeader(200)
			for p := body; len(p) > 0; {
				n := min(len(p), 7000)
				w.Write(p[:n])
				w.(http.Flusher).Flush()
				p = p[n:]
			}
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.Write(body)
	}))
	defer origin.Close()
	b := serve(t, Config{}, func(p *route.Policy) { p.BodyBytesMax = 0 }, addrOf(origin))
	random := rand.NewChaCha8([32]byte{})
	for _, size := range []int{0, 1, 13, 4096, 65536, 70000, 1 << 20, 9 << 20} {
		body := make([]byte, size)
		random.Read(body)
		for _, upChunked := range []bool{false, true} {
			for _, query := range []string{"", "?chunked"} {
				var reader io.Reader = bytes.NewReader(body)
				if upChunked {
					reader = io.MultiReader(reader) // hides the length
				}
				resp, err := http.Post(b.url+"/x"+query, "application/octet-stream", reader)
				if err != nil {
					t.Fatalf("size %d, chunked up %v, %s: %v", size, upChunked, query, err)
				}
				got, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 200 || sha256.Sum256(got) != sha256.Sum256(body) {
					t.Fatalf("size %d, chunked up %v, %s: status %d, %d bytes back, %v", size, upChunked, query, resp.StatusCode, len(got), err)
				}
			}
		}
	}
}

func TestConnectionsAreReused(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello, world\n") }))
	defer origin.Close()
	b := serve(t, Config{}, nil, addrOf(origin))
	for range 50 {
		resp, err := http.Get(b.url)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	s := &b.cluster.Stats.Shards[0]
	if s.Opened.Load() != 1 || s.Reused.Load() != 49 {
		t.Errorf("opened %d, reused %d; want 1 and 49", s.Opened.Load(), s.Reused.Load())
	}
	if st := b.server.Stats(); st.Workers[0].Accepted != 1 {
		t.Errorf("accepted %d connections, want 1", st.Workers[0].Accepted)
	}
}

func TestNoAllocationPerRequest(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				buf := make([]byte, 4096)
				answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 13\r\nDate: x\r\n\r\nhello, world\n")
				for {
					if _, err := c.Read(buf); err != nil {
						return
					}
					c.Write(answer)
				}
			}()
		}
	}()
	b := serve(t, Config{}, nil, l.Addr().String())
	c, err := net.Dial("tcp", b.server.Addresses()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	request := []byte("GET /index.html HTTP/1.1\r\nHost: a.example\r\nUser-Agent: test\r\nAccept: */*\r\nCookie: a=b\r\n\r\n")
	buf := make([]byte, 4096)
	run := func(n int) {
		for range n {
			c.Write(request)
			if _, err := c.Read(buf); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(100)
	// Not testing.AllocsPerRun: it allows one P only, which the loop would share
	// with client and endpoint.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const requests = 5000
	run(requests)
	runtime.ReadMemStats(&after)
	// The runtime itself allocates now and then; one in a hundred requests is
	// far from one a request.
	if n := after.Mallocs - before.Mallocs; n > requests/100 {
		t.Errorf("%d allocations in %d requests, want none", n, requests)
	}
}
