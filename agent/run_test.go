package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// running is an agent that serves a directory.
type running struct {
	dir     string
	base    string // of the served site
	admin   string
	cancel  context.CancelFunc
	kill    chan struct{}
	reopen  chan struct{}
	done    chan error
	backend *httptest.Server
}

// start runs an agent in front of a backend that answers each path with handle.
func start(t *testing.T, handle http.HandlerFunc, edit func(*Config)) *running {
	t.Helper()
	leaksNothing(t)
	r := &running{dir: t.TempDir(), kill: make(chan struct{}), reopen: make(chan struct{}), done: make(chan error, 1)}
	r.backend = httptest.NewServer(handle)
	t.Cleanup(r.backend.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	put(t, r.dir, "site.yaml", site)
	put(t, r.dir, "endpoints.yaml", r.endpoints())
	ready := make(chan Addresses, 1)
	c := Config{
		Manifests:     r.dir,
		HTTPAddresses: []netip.AddrPort{addr("127.0.0.1:0")},
		AdminAddress:  addr("127.0.0.1:0"),
		Workers:       2,
		DrainTimeout:  20 * time.Second,
		Kill:          r.kill,
		Reopen:        r.reopen,
		Started:       func(a Addresses) { ready <- a },
	}
	if edit != nil {
		edit(&c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	t.Cleanup(cancel)
	go func() { r.done <- Run(ctx, c) }()
	select {
	case a := <-ready:
		r.base, r.admin = "http://"+a.HTTP[0].String(), "http://"+a.Admin.String()
	case err := <-r.done:
		t.Fatalf("Run = %v before it was ready", err)
	case <-time.After(10 * time.Second):
		t.Fatal("not ready after 10 s")
	}
	return r
}

func (r *running) endpoints() string {
	a := r.backend.Listener.Addr().(*net.TCPAddr).AddrPort()
	return endpoints(a.Addr().String(), a.Port())
}

// get asks for a page with a Host; status 0 means that no answer came.
func (r *running) get(url, host string) (status int, body string) {
	q, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return 0, err.Error()
	}
	q.Host = host
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		return 0, err.Error()
	}
	return a.StatusCode, string(b)
}

// end waits for Run.
func (r *running) end(t *testing.T) error {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	select {
	case err := <-r.done:
		return err
	case <-time.After(15 * time.Second):
		t.Fatal("Run did not return within 15 s")
		return nil
	}
}

func echo(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "backend got ", r.URL.Path) }

func TestRunServesFollowsAndDrains(t *testing.T) {
	r := start(t, echo, nil)
	if status, body := r.get(r.base+"/a", "shop.example"); status != 200 || body != "backend got /a" {
		t.Errorf("GET /a = %d %q, want the backend's answer", status, body)
	}
	if status, _ := r.get(r.base+"/a", "other.example"); status != 404 {
		t.Errorf("GET of an unknown host = %d, want 404", status)
	}
	if status, body := r.get(r.admin+"/readyz", ""); status != 200 {
		t.Errorf("/readyz = %d %q, want 200", status, body)
	}
	put(t, r.dir, "site.yaml", strings.Replace(site, "path: /,", "path: /b,", 1))
	eventually(t, "404 for a path that no rule has any more", func() bool {
		status, _ := r.get(r.base+"/a", "shop.example")
		return status == 404
	})
	if status, _ := r.get(r.base+"/b", "shop.example"); status != 200 {
		t.Errorf("GET /b = %d, want 200", status)
	}
	_, page := r.get(r.admin+"/metrics", "")
	for _, want := range []string{
		"weir_route_requests_total{host=\"shop.example\",ingress=\"shop/web\",status=\"2xx\"} ",
		"weir_table_swaps_total 2\n", "weir_agent_ready 1\n", "weir_table_routes 1\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	r.cancel()
	if err := r.end(t); err != nil {
		t.Errorf("Run = %v after a drain, want nil", err)
	}
}

// While an answer is on its way the agent is not ready, still follows endpoints,
// and does not end; then it ends.
func TestRunDrainsRunningExchanges(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	r := start(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/slow" {
			close(arrived)
			<-release
		}
		echo(w, q)
	}, nil)
	slow := make(chan string, 1)
	go func() {
		_, body := r.get(r.base+"/slow", "shop.example")
		slow <- body
	}()
	<-arrived
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let) // before the backend is closed, which waits for it
	r.cancel()
	eventually(t, "/readyz answers 503", func() bool {
		status, _ := r.get(r.admin+"/readyz", "")
		return status == 503
	})
	if status, body := r.get(r.base+"/during", "shop.example"); status != 200 {
		t.Errorf("a request while draining = %d %q, want 200", status, body)
	}
	put(t, r.dir, "endpoints.yaml", strings.Replace(r.endpoints(), "ready: true", "ready: false", 1))
	eventually(t, "endpoints are followed while draining", func() bool {
		_, table := r.get(r.admin+"/debug/table", "")
		return strings.Contains(table, `"active": []`)
	})
	select {
	case err := <-r.done:
		t.Fatalf("Run = %v before the last answer", err)
	default:
	}
	let()
	if body := <-slow; body != "backend got /slow" {
		t.Errorf("the running exchange got %q", body)
	}
	if err := r.end(t); err != nil {
		t.Errorf("Run = %v after a drain, want nil", err)
	}
}

func TestKillEndsTheDrain(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	r := start(t, func(http.ResponseWriter, *http.Request) { close(arrived); <-release }, nil)
	defer close(release)
	slow := make(chan int, 1)
	go func() {
		status, _ := r.get(r.base+"/", "shop.example")
		slow <- status
	}()
	<-arrived
	r.cancel()
	close(r.kill)
	if err := r.end(t); err != nil {
		t.Errorf("Run = %v after Kill, want nil", err)
	}
	if status := <-slow; status != 0 {
		t.Errorf("the running exchange ended with %d, want a broken connection", status)
	}
}

func TestAccessLogGoesToItsFileAndIsReopened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	r := start(t, echo, func(c *Config) { c.AccessLog, c.AccessLogFile = "json", path })
	r.get(r.base+"/one", "shop.example")
	has := func(path, want string) func() bool {
		return func() bool {
			b, _ := os.ReadFile(path)
			return strings.Contains(string(b), want)
		}
	}
	eventually(t, "the request is logged", has(path, "/one"))
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	r.reopen <- struct{}{}
	eventually(t, "the file is there again", func() bool { _, err := os.Stat(path); return err == nil })
	r.get(r.base+"/two", "shop.example")
	eventually(t, "the new file is written", has(path, "/two"))
	if has(path+".1", "/two")() {
		t.Error("the old file got the new line")
	}
	r.cancel()
	if err := r.end(t); err != nil {
		t.Error(err)
	}
}

func TestRunSetsGOMAXPROCSAndPutsItBack(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	before := runtime.GOMAXPROCS(0)
	r := start(t, echo, func(c *Config) { c.Workers = 4 })
	if n := runtime.GOMAXPROCS(0); n != 5 {
		t.Errorf("GOMAXPROCS = %d with 4 workers, want 5", n)
	}
	r.cancel()
	if err := r.end(t); err != nil {
		t.Error(err)
	}
	if n := runtime.GOMAXPROCS(0); n != before {
		t.Errorf("GOMAXPROCS = %d after Run, want %d as before", n, before)
	}
}

func TestGOMAXPROCSOfTheEnvironmentStays(t *testing.T) {
	t.Setenv("GOMAXPROCS", "3")
	before := runtime.GOMAXPROCS(0)
	defer reserveProcs(before + 7)()
	if n := runtime.GOMAXPROCS(0); n != before {
		t.Errorf("GOMAXPROCS = %d, want %d as before", n, before)
	}
}

func TestRunFailsWhereItCannotStart(t *testing.T) {
	leaksNothing(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	busy := taken.Addr().(*net.TCPAddr).AddrPort()
	for _, tt := range []struct {
		name string
		edit func(*Config)
		is   error  // the cause
		says string // in the text
	}{
		{"no directory", func(c *Config) { c.Manifests = filepath.Join(c.Manifests, "none") }, os.ErrNotExist, "none"},
		{"no manifests", func(c *Config) { c.Manifests = "" }, nil, "either a directory of manifests"},
		{"http address taken", func(c *Config) { c.HTTPAddresses = []netip.AddrPort{busy} }, syscall.EADDRINUSE, busy.String()},
		{"admin address taken", func(c *Config) { c.AdminAddress = busy }, syscall.EADDRINUSE, "admin server"},
		{"access log in no directory", func(c *Config) { c.AccessLog, c.AccessLogFile = "json", "/nonexistent/x/log" }, os.ErrNotExist, "access log"},
		{"unknown accept policy", func(c *Config) { c.AcceptPolicy = "random" }, nil, "accept policy"},
	} {
		c := Config{Manifests: t.TempDir(), HTTPAddresses: []netip.AddrPort{addr("127.0.0.1:0")}, AdminAddress: addr("127.0.0.1:0"), Workers: 1}
		tt.edit(&c)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		err := Run(ctx, c)
		cancel()
		if err == nil || !strings.Contains(err.Error(), tt.says) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: Run = %v, want an error with %q that is %v", tt.name, err, tt.says, tt.is)
		}
	}
}

// The addresses of a run that failed or ended are free again.
func TestRunLeavesNoSocket(t *testing.T) {
	r := start(t, echo, nil)
	r.cancel()
	if err := r.end(t); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{r.base, r.admin} {
		l, err := net.Listen("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Errorf("listen again on %s: %v", url, err)
			continue
		}
		l.Close()
	}
}
