package rig

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Agent is a running weir agent.
type Agent struct {
	*Process
	Addr  netip.AddrPort // HTTP
	Admin netip.AddrPort
	Dir   Dir // its own manifests; none without StartAgent
	t     testing.TB
}

// StartAgent runs a weir agent over objects and waits until it is ready. An
// IngressClass is added. flags come after those of the rig, so they win.
func StartAgent(t testing.TB, objects []Object, flags ...string) *Agent {
	t.Helper()
	return StartAgentCommand(t, func(args ...string) *exec.Cmd { return exec.Command(Binary(t), args...) }, objects, flags...)
}

// StartAgentCommand is StartAgent for a command that the caller makes, such as
// one that runs with limits.
func StartAgentCommand(t testing.TB, command func(args ...string) *exec.Cmd, objects []Object, flags ...string) *Agent {
	t.Helper()
	dir := Dir{Path: t.TempDir()}
	if err := dir.Put(append([]Object{Class()}, objects...)...); err != nil {
		t.Fatal(err)
	}
	a := LaunchAgent(t, command, append([]string{"--source", "dir", "--manifests", dir.Path, "--controller-class", Controller}, flags...)...)
	a.Dir = dir
	a.AwaitReady()
	return a
}

// LaunchAgent runs a weir agent on free addresses and does not wait until it is
// ready. flags say where its objects come from.
func LaunchAgent(t testing.TB, command func(args ...string) *exec.Cmd, flags ...string) *Agent {
	t.Helper()
	a := &Agent{t: t, Addr: Free(t), Admin: Free(t)}
	args := append([]string{
		"agent", "--http-address", a.Addr.String(), "--admin-address", a.Admin.String(),
		"--workers", "2", "--access-log", "off",
	}, flags...)
	a.Process = Start(t, command(args...))
	return a
}

// Free returns a free TCP address on 127.0.0.1.
func Free(t testing.TB) netip.AddrPort {
	t.Helper()
	addr, err := FreeAddr(Loopback)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// AwaitReady waits until /readyz answers 200.
func (a *Agent) AwaitReady() {
	a.t.Helper()
	Eventually(a.t, Deadline, "agent ready", func() error {
		if !a.Running() {
			a.t.Fatalf("agent ended:\n%s", a.Log())
		}
		status, body, err := a.AdminGet("/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("/readyz: %d %s", status, body)
		}
		return err
	})
}

// AdminGet fetches a path of the admin address.
func (a *Agent) AdminGet(path string) (status int, body string, err error) {
	client := &http.Client{Timeout: Deadline, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + a.Admin.String() + path)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// WorkerStats returns the counters of the agent's workers, one map each.
func (a *Agent) WorkerStats() []map[string]any {
	a.t.Helper()
	var stats struct{ Workers []map[string]any }
	a.debug("/debug/workers", &stats)
	return stats.Workers
}

// Accept is what the agent tells of its accept policy.
type Accept struct {
	Policy, Wanted, Cause, Reason string
	Changeable                    bool
}

// Accept returns the accept policy in force.
func (a *Agent) Accept() Accept {
	a.t.Helper()
	var v Accept
	a.debug("/accept-policy", &v)
	return v
}

// TableVersion returns the version of the routing table in force.
func (a *Agent) TableVersion() uint64 {
	a.t.Helper()
	var stats struct{ TableVersion uint64 }
	a.debug("/debug/workers", &stats)
	return stats.TableVersion
}

func (a *Agent) debug(path string, into any) {
	a.t.Helper()
	status, body, err := a.AdminGet(path)
	if err != nil || status != http.StatusOK {
		a.t.Fatalf("%s: %d, %v", path, status, err)
	}
	if err := json.Unmarshal([]byte(body), into); err != nil {
		a.t.Fatalf("%s: %v in %s", path, err, body)
	}
}

// Metric returns the sum of all samples of a metric, with any labels.
func (a *Agent) Metric(name string) float64 {
	a.t.Helper()
	_, body, err := a.AdminGet("/metrics")
	if err != nil {
		a.t.Fatal(err)
	}
	sum, found := 0.0, false
	for line := range strings.Lines(body) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || (rest[0] != '{' && rest[0] != ' ') {
			continue
		}
		var v float64
		if _, err := fmt.Sscan(rest[strings.LastIndexByte(rest, ' ')+1:], &v); err != nil {
			a.t.Fatalf("metric %q: %v", line, err)
		}
		sum, found = sum+v, true
	}
	if !found {
		a.t.Fatalf("no metric %s", name)
	}
	return sum
}

// Put writes objects into the agent's directory.
func (a *Agent) Put(objects ...Object) {
	a.t.Helper()
	if err := a.Dir.Put(objects...); err != nil {
		a.t.Fatal(err)
	}
}

// Delete removes objects from the agent's directory.
func (a *Agent) Delete(objects ...Object) {
	a.t.Helper()
	if err := a.Dir.Delete(objects...); err != nil {
		a.t.Fatal(err)
	}
}

// Eventually polls check until it returns nil; after within the test fails with
// the last error.
func Eventually(t testing.TB, within time.Duration, what string, check func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(within); time.Now().Before(end); {
		if err = check(); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond) // the interval of a poll with a deadline
	}
	t.Fatalf("%s: not within %v: %v", what, within, err)
}
