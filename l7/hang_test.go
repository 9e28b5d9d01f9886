package l7

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/l7/route"
)

// hangingAddr returns an address whose connects hang: a socket that listens with
// a full backlog and never accepts, so that the kernel drops every SYN.
func hangingAddr(t *testing.T) string {
	addr, _, _ := hangingSocket(t)
	return addr
}

// hangingSocket returns the address, the socket, and the ports of those who fill
// the backlog.
func hangingSocket(t *testing.T) (addr string, fd int, filled map[int]bool) {
	fd, addr = tight(t)
	return addr, fd, fill(t, addr)
}

// tight returns a socket that listens with the smallest backlog, and its address.
func tight(t *testing.T) (fd int, addr string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return fd, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(sa.(*unix.SockaddrInet4).Port)).String()
}

// fill connects to addr until its backlog is full, and returns the own ports.
func fill(t *testing.T, addr string) map[int]bool {
	t.Helper()
	ports := map[int]bool{}
	for range 8 {
		c, err := net.DialTimeout("tcp", addr, 200*time.Millisecond)
		if err != nil {
			return ports // full
		}
		t.Cleanup(func() { c.Close() })
		ports[c.LocalAddr().(*net.TCPAddr).Port] = true
	}
	t.Fatal("the backlog is never full")
	return nil
}

func TestAConnectThatHangsGetsCompany(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
	defer origin.Close()
	b := serve(t, Config{Upstream: UpstreamLimits{HedgeAfter: 100 * time.Millisecond}}, nil, hangingAddr(t), addrOf(origin))
	client := http.Client{Timeout: patience}
	for i := range 4 {
		start := time.Now()
		resp, err := client.Post(b.url, "text/plain", nil) // nothing was written: any method
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if took := time.Since(start); resp.StatusCode != 200 || took > 900*time.Millisecond {
			t.Errorf("request %d: status %d after %v, want 200 within 900 ms", i, resp.StatusCode, took)
		}
	}
	s := &b.cluster.Stats.Shards[0]
	if s.Ejections.Load() != 1 || s.Retries.Load() != 1 {
		t.Errorf("%d ejections and %d retries, want 1 and 1: the endpoint that hangs is left alone then", s.Ejections.Load(), s.Retries.Load())
	}
}

func TestALoneEndpointThatHangsTimesOut(t *testing.T) {
	b := serve(t, Config{Upstream: UpstreamLimits{HedgeAfter: 50 * time.Millisecond}},
		func(p *route.Policy) { p.ConnectTimeout = 300 * time.Millisecond }, hangingAddr(t))
	start := time.Now()
	resp, err := http.Get(b.url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if took := time.Since(start); resp.StatusCode != 504 || took < 300*time.Millisecond || took > 900*time.Millisecond {
		t.Errorf("status %d after %v, want 504 after 300 ms", resp.StatusCode, took)
	}
}
