package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// needRoot skips, or fails if the environment promises root.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() == 0 {
		return
	}
	if os.Getenv("WEIR_REQUIRE_ROOT") == "1" {
		t.Fatal("not root although WEIR_REQUIRE_ROOT=1")
	}
	t.Skip("needs root: it loads BPF programs")
}

// pins mounts a BPF file system for the test.
func pins(t *testing.T) string {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	if err := syscall.Mount("bpf", dir, "bpf", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return filepath.Join(dir, "weir")
}

// policy asks the admin server about the accept policy.
func (r *running) policy(t *testing.T) (v AcceptView) {
	t.Helper()
	status, body := r.get(r.admin+"/accept-policy", "")
	if err := json.Unmarshal([]byte(body), &v); err != nil || status != 200 {
		t.Fatalf("GET /accept-policy = %d %s", status, body)
	}
	return v
}

// setPolicy asks the admin server for another one.
func (r *running) setPolicy(t *testing.T, policy string) (status int, body string) {
	t.Helper()
	q, err := http.NewRequest("PUT", r.admin+"/accept-policy", strings.NewReader(policy))
	if err != nil {
		t.Fatal(err)
	}
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

func TestWithoutBPFTheKernelsHashIsInForce(t *testing.T) {
	for _, wanted := range []string{"cpu", "least-loaded"} {
		r := start(t, echo, func(c *Config) { c.AcceptPolicy, c.BPF = wanted, "off" })
		v := r.policy(t)
		if v.Policy != "hash" || v.Wanted != wanted || v.Cause != "off" || v.Reason == "" || v.Changeable {
			t.Errorf("%s: %+v, want hash because BPF is off", wanted, v)
		}
		if status, _ := r.get(r.base+"/", "shop.example"); status != 200 {
			t.Errorf("%s: answer %d, want 200", wanted, status)
		}
		want := fmt.Sprintf(`weir_accept_policy{cause="off",policy="hash",wanted=%q} 1`, wanted)
		if _, body := r.get(r.admin+"/metrics", ""); !strings.Contains(body, want) {
			t.Errorf("metrics lack %s", want)
		}
		if status, body := r.setPolicy(t, "hash"); status != 409 || !strings.Contains(body, "switched off") {
			t.Errorf("%s: a change = %d %s, want 409 and why", wanted, status, body)
		}
		r.cancel()
		if err := r.end(t); err != nil {
			t.Error(err)
		}
	}
}

func TestASharedSocketCannotBeSteeredLater(t *testing.T) {
	r := start(t, echo, nil)
	if v := r.policy(t); v.Policy != "shared" || v.Wanted != "shared" || v.Cause != "" || v.Changeable {
		t.Errorf("%+v, want shared and nothing else", v)
	}
	if status, body := r.setPolicy(t, "cpu"); status != 409 || !strings.Contains(body, "restart") {
		t.Errorf("a change to cpu = %d %s, want 409 and to restart", status, body)
	}
	r.cancel()
	if err := r.end(t); err != nil {
		t.Error(err)
	}
}

// TestThePolicyChangesUnderLoad: a client that opens a connection for each request
// goes on all the time.
func TestThePolicyChangesUnderLoad(t *testing.T) {
	dir := pins(t)
	r := start(t, echo, func(c *Config) {
		c.AcceptPolicy, c.BPF, c.Pins, c.PinWorkers = "least-loaded", "require", dir, true
	})
	if v := r.policy(t); v.Policy != "least-loaded" || !v.Changeable || !v.Pinned || v.Reason != "" {
		t.Fatalf("%+v, want least-loaded in force", v)
	}
	var served, failed atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
			for {
				select {
				case <-stop:
					return
				default:
				}
				q, _ := http.NewRequest("GET", r.base+"/", nil)
				q.Host = "shop.example"
				a, err := client.Do(q)
				if err != nil {
					failed.Add(1)
					t.Error(err)
					continue
				}
				io.Copy(io.Discard, a.Body)
				a.Body.Close()
				served.Add(1)
			}
		}()
	}
	for i := range 60 {
		policy := []string{"hash", "cpu", "least-loaded"}[i%3]
		before := served.Load()
		if status, body := r.setPolicy(t, policy); status != 200 {
			t.Fatalf("a change to %s = %d %s", policy, status, body)
		}
		if v, err := Maps(dir); err != nil || v.Policy != policy {
			t.Fatalf("the maps show %q, %v; want %s", v.Policy, err, policy)
		}
		eventually(t, "more is served", func() bool { return served.Load() > before+5 })
	}
	close(stop)
	for range 4 {
		<-done
	}
	if failed.Load() > 0 {
		t.Errorf("%d of %d requests failed", failed.Load(), failed.Load()+served.Load())
	}
	v, err := Maps(dir)
	if err != nil {
		t.Fatal(err)
	}
	decided, sum := map[string]uint64{}, uint64(0)
	for _, d := range v.Decisions {
		decided[d.Reason] = d.Count
		sum += d.Count
	}
	if decided["hash"] == 0 || decided["cpu"] == 0 || decided["local"] == 0 || sum != uint64(served.Load()) {
		t.Errorf("%d connections, decided as %v; want as many, and some of each policy", served.Load(), decided)
	}
	for _, tt := range []struct {
		policy string
		status int
	}{{"shared", 409}, {"fountain", 409}, {"random", 400}, {strings.Repeat("x", 1000), 400}} {
		if status, body := r.setPolicy(t, tt.policy); status != tt.status {
			t.Errorf("a change to %.10s = %d %s, want %d", tt.policy, status, body, tt.status)
		}
	}
	r.cancel()
	if err := r.end(t); err != nil {
		t.Error(err)
	}
	if _, err := Maps(dir); !os.IsNotExist(err) && !strings.Contains(fmt.Sprint(err), "no such file") {
		t.Errorf("after the agent's end Maps = %v, want that there are none", err)
	}
}

// TestWorkersTellTheirLoadAsTheProgramReadsIt holds l7.WorkerLoad and struct
// weir_worker together.
func TestWorkersTellTheirLoadAsTheProgramReadsIt(t *testing.T) {
	dir := pins(t)
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	r := start(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/hold" {
			<-hold
		}
		echo(w, q)
	}, func(c *Config) {
		c.AcceptPolicy, c.BPF, c.Pins = "least-loaded", "require", dir
		c.Limits.ConnectionsMax = 12
	})
	t.Cleanup(release) // before the backend waits for its requests
	var open []net.Conn
	for i := range 10 {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
		if i < 4 {
			fmt.Fprint(c, "GET /hold HTTP/1.1\r\nHost: shop.example\r\n\r\n")
		}
	}
	total := func() (connections, active uint32, accepted uint64, idle, full int) {
		v, err := Maps(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range v.Workers {
			connections, active, accepted = connections+w.Connections, active+w.Active, accepted+w.Accepted
			switch w.State {
			case "idle":
				idle++
			case "full":
				full++
			}
		}
		return
	}
	eventually(t, "10 connections, 4 exchanges, both workers asleep or one full", func() bool {
		c, a, n, idle, full := total()
		return c == 10 && a == 4 && n == 10 && idle > 0 && idle+full == 2
	})
	for range 2 {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	eventually(t, "both workers full", func() bool {
		c, _, _, _, full := total()
		return c == 12 && full == 2
	})
	release()
	for _, c := range open {
		c.Close()
	}
	eventually(t, "no exchange, none full", func() bool {
		_, a, _, _, full := total()
		return a == 0 && full == 0
	})
	r.cancel()
	if err := r.end(t); err != nil {
		t.Error(err)
	}
}

func TestWithoutRightsTheKernelsHashIsInForceUnlessRequired(t *testing.T) {
	needRoot(t)
	runtime.LockOSThread() // never unlocked: the thread ends without rights
	const nobody = 65534
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); e != 0 {
		t.Fatal(e)
	}
	c := Config{AcceptPolicy: "least-loaded", BPF: "auto", Workers: 2, Logger: discard()}
	a, err := openAccepting(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := a.see(); v.Policy != "hash" || v.Wanted != "least-loaded" || v.Cause != "denied" || v.Reason == "" {
		t.Errorf("%+v, want hash because rights are missing", v)
	}
	c.BPF = "require"
	if _, err := openAccepting(c, nil); err == nil || !strings.Contains(err.Error(), "BPF is required") || !strings.Contains(err.Error(), "weir check") {
		t.Errorf("with BPF required: %v, want an error that says so and what to do", err)
	}
}

func TestMoreWorkersThanCanBeSteeredFallBack(t *testing.T) {
	a, err := openAccepting(Config{AcceptPolicy: "least-loaded", BPF: "auto", Workers: 257, Logger: discard()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := a.see(); v.Policy != "hash" || v.Cause != "workers" {
		t.Errorf("%+v, want hash because of the workers", v)
	}
}
