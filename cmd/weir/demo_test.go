package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirproxy/weir/agent"
)

func TestDemoManifestsLintClean(t *testing.T) {
	dir := t.TempDir()
	if err := writeDemo(dir, netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2")); err != nil {
		t.Fatal(err)
	}
	check := func(summary string) {
		t.Helper()
		code, stdout, stderr := weir("lint", "--manifests", dir)
		if code != 0 || stderr != "" || !strings.Contains(stdout, summary) {
			t.Errorf("weir lint of the demo: exit code %d, want 0 and %q\n%s%s", code, summary, stdout, stderr)
		}
	}
	check("2 Ingresses served, 2 hosts, 4 routes")
	if err := os.Rename(filepath.Join(dir, "catch-all.yaml.off"), filepath.Join(dir, "catch-all.yaml")); err != nil {
		t.Fatal(err)
	}
	check("3 Ingresses served, 3 hosts, 5 routes")
}

// lineWriter hands on what is written.
type lineWriter chan string

func (w lineWriter) Write(b []byte) (int, error) {
	w <- string(b)
	return len(b), nil
}

// startDemo runs the demo on free ports and returns its tour.
func startDemo(t *testing.T) (tour, base, dir string, stop func() error) {
	t.Helper()
	o := defaultOptions()
	c := o.config
	c.HTTPAddresses = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}
	c.AdminAddress = netip.MustParseAddrPort("127.0.0.1:0")
	c.PinWorkers, c.Workers, c.DrainTimeout = false, 1, 10*time.Second
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	out, done := make(lineWriter, 8), make(chan error, 1)
	go func() { done <- demo(ctx, c, out) }()
	select {
	case tour = <-out:
	case err := <-done:
		t.Fatalf("demo ended with %v before its tour", err)
	case <-time.After(10 * time.Second):
		t.Fatal("no tour after 10 s")
	}
	m := regexp.MustCompile(`manifests in (\S+)\non (http://\S+);`).FindStringSubmatch(tour)
	if m == nil {
		t.Fatalf("the tour names neither directory nor address:\n%s", tour)
	}
	return tour, m[2], m[1], func() error {
		cancel()
		http.DefaultClient.CloseIdleConnections()
		select {
		case err := <-done:
			return err
		case <-time.After(15 * time.Second):
			t.Fatal("the demo did not end within 15 s")
			return nil
		}
	}
}

func ask(t *testing.T, url, host string) (int, string) {
	t.Helper()
	q, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Host = host
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(b)
}

// What the tour offers works as it says.
func TestDemoServesItsTour(t *testing.T) {
	_, base, dir, stop := startDemo(t)
	for _, tt := range []struct {
		name, host, path string
		status           int
		contains         string
	}{
		{"prefix", "shop.example", "/cart/7", 200, "GET /cart/7"},
		{"exact", "shop.example", "/cart/health", 200, "backend one"},
		{"longer prefix", "shop.example", "/cart/admin/7", 200, "backend two"},
		{"wildcard", "any.tools.example", "/", 200, "Host: any.tools.example"},
		{"no rule for the path", "shop.example", "/cartoon", 404, ""},
		{"no rule for the host", "nobody.example", "/", 404, ""},
		{"streamed", "any.tools.example", "/stream", 200, "line 6 of 6"},
	} {
		status, body := ask(t, base+tt.path, tt.host)
		if status != tt.status || !strings.Contains(body, tt.contains) {
			t.Errorf("%s: GET %s of %s = %d %q, want %d with %q", tt.name, tt.path, tt.host, status, body, tt.status, tt.contains)
		}
	}
	seen := map[string]bool{}
	for range 20 {
		_, body := ask(t, base+"/cart", "shop.example")
		first, _, _ := strings.Cut(body, "\n")
		seen[first] = true
	}
	if len(seen) != 2 {
		t.Errorf("/cart was answered by %v, want both backends", seen)
	}
	if err := os.Rename(filepath.Join(dir, "catch-all.yaml.off"), filepath.Join(dir, "catch-all.yaml")); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		if status, _ := ask(t, base+"/", "nobody.example"); status == 200 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the catch-all was not served within 10 s")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := stop(); err != nil {
		t.Errorf("demo = %v, want nil", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the manifests are still there: %v", err)
	}
}

func TestDemoWebSocketEchoes(t *testing.T) {
	_, base, _, stop := startDemo(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	// The key and its answer are the example of RFC 6455, 1.3.
	io.WriteString(conn, "GET /ws HTTP/1.1\r\nHost: any.tools.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	r := bufio.NewReader(conn)
	a, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Header.Get("Sec-WebSocket-Accept"); a.StatusCode != 101 || got != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Fatalf("answer %d, Sec-WebSocket-Accept %q", a.StatusCode, got)
	}
	frame := func() (byte, string) {
		t.Helper()
		head := make([]byte, 2)
		if _, err := io.ReadFull(r, head); err != nil {
			t.Fatal(err)
		}
		n := int(head[1])
		if n == 126 {
			wide := make([]byte, 2)
			if _, err := io.ReadFull(r, wide); err != nil {
				t.Fatal(err)
			}
			n = int(wide[0])<<8 | int(wide[1])
		}
		payload := make([]byte, n)
		if _, err := io.ReadFull(r, payload); err != nil {
			t.Fatal(err)
		}
		return head[0], string(payload)
	}
	if op, text := frame(); op != 0x81 || !strings.HasPrefix(text, "hello from backend one") {
		t.Errorf("greeting = %#x %q", op, text)
	}
	conn.Write([]byte{0x81, 0x82, 1, 2, 3, 4, 'h' ^ 1, 'i' ^ 2}) // "hi", masked
	if op, text := frame(); op != 0x81 || text != "hi" {
		t.Errorf("echo = %#x %q, want a text frame with hi", op, text)
	}
	long := strings.Repeat("x", 300)
	conn.Write(append([]byte{0x82, 0x80 | 126, 300 >> 8, 300 & 0xff, 0, 0, 0, 0}, long...))
	if op, text := frame(); op != 0x82 || text != long {
		t.Errorf("echo of 300 bytes = %#x and %d bytes", op, len(text))
	}
	conn.Write([]byte{0x88, 0x80, 0, 0, 0, 0})
	if op, _ := frame(); op != 0x88 {
		t.Errorf("answer to a close frame = %#x, want a close frame", op)
	}
	conn.Close()
	if err := stop(); err != nil {
		t.Errorf("demo = %v, want nil", err)
	}
}

func TestDemoNamesTheFlagForATakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, flag := range []string{"--http-address", "--admin-address"} {
		args := []string{"demo", "--http-address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0", "--workers", "1"}
		for i := range args {
			if args[i] == flag {
				args[i+1] = taken.Addr().String()
			}
		}
		code, _, stderr := weir(args...)
		if code != exitBroken || !strings.Contains(stderr, taken.Addr().String()) || !strings.Contains(stderr, flag) {
			t.Errorf("%s taken: exit code %d, stderr %q, want %d, the address and the flag", flag, code, stderr, exitBroken)
		}
	}
}

// What the tour says of the program can be pasted into a shell.
func TestTourNamesThisProgram(t *testing.T) {
	tour, _, dir, stop := startDemo(t)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" " + program(os.Args[0]) + " explain GET ", " " + program(os.Args[0]) + " lint --manifests " + dir} {
		if !strings.Contains(tour, want) {
			t.Errorf("the tour lacks %q:\n%s", want, tour)
		}
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ in, want string }{
		{"weir", "weir"},
		{"/opt/weir", "/opt/weir"},
		{"bin/weir", quoted(wd + "/bin/weir")},
		{"/my bin/weir", "'/my bin/weir'"},
		{"/it's/weir", `'/it'\''s/weir'`},
		{"/$HOME/weir", "'/$HOME/weir'"},
	} {
		if got := program(tt.in); got != tt.want {
			t.Errorf("program(%q) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestDemoSaysHowItEnded(t *testing.T) {
	killed := make(chan struct{})
	close(killed)
	for _, tt := range []struct {
		name string
		kill <-chan struct{}
		took time.Duration
		want string
	}{
		{"drained", make(chan struct{}), time.Second, "Drained and ended."},
		{"killed", killed, time.Second, "Ended at once"},
		{"timed out", nil, 10 * time.Second, "drain timeout of 10s"},
	} {
		got := farewell(&agent.Config{Kill: tt.kill, DrainTimeout: 10 * time.Second}, tt.took)
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}

	c := defaultOptions().config
	c.HTTPAddresses = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}
	c.AdminAddress = netip.MustParseAddrPort("127.0.0.1:0")
	c.PinWorkers, c.Workers, c.Kill = false, 1, killed
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	if err := demo(ctx, c, &out); err != nil || !strings.Contains(out.String(), "Ended at once") {
		t.Errorf("killed demo = %v and says %q, want nil and that it ended at once", err, out.String())
	}
}

// The signals are those that nothing else in the test's process uses.
func TestFirstSignalDrainsSecondKills(t *testing.T) {
	var c agent.Config
	ctx, stop := watch(t.Context(), &c, syscall.SIGUSR2)
	defer stop()
	send := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	wait := func(what string, ch <-chan struct{}) {
		t.Helper()
		select {
		case <-ch:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: nothing after 10 s", what)
		}
	}
	send(syscall.SIGUSR1)
	wait("SIGUSR1 opens the log again", c.Reopen)
	if ctx.Err() != nil {
		t.Fatal("SIGUSR1 ended the run")
	}
	send(syscall.SIGUSR2)
	wait("the first signal ends the context", ctx.Done())
	select {
	case <-c.Kill:
		t.Fatal("the first signal killed")
	default:
	}
	send(syscall.SIGUSR2)
	wait("the second signal kills", c.Kill)
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGUSR2) // else a third would end the test
	defer signal.Stop(caught)
	send(syscall.SIGUSR2)
	select {
	case <-caught:
	case <-time.After(10 * time.Second):
		t.Fatal("the third signal did not arrive")
	}
}
