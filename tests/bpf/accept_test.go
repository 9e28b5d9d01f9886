// Package bpf tests the agent as a process with its BPF programs in the running kernel.
package bpf

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// needRootForBPF skips, or fails if the environment promises root.
func needRootForBPF(t *testing.T) {
	t.Helper()
	if os.Getuid() == 0 {
		return
	}
	if os.Getenv("WEIR_REQUIRE_ROOT") == "1" {
		t.Fatal("not root although WEIR_REQUIRE_ROOT=1")
	}
	t.Skip("needs root: the agent loads BPF programs")
}

// TestSteeredConnections: connections that stay are dealt out evenly, over IPv4 and
// IPv6, and each is served.
func TestSteeredConnections(t *testing.T) {
	needRootForBPF(t)
	const host, each = "a.example.test", 16
	for _, policy := range []string{"cpu", "least-loaded"} {
		t.Run(policy, func(t *testing.T) {
			b := rig.NewRecorder(t, "a")
			objects := append(rig.Svc("t1", "a", b.Addr), rig.Ingress("t1", "i", rig.R(host, "/", "Prefix", "a")))
			six, err := rig.FreeAddr(netip.IPv6Loopback())
			if err != nil {
				t.Fatal(err)
			}
			four, err := rig.FreeAddr(rig.Loopback)
			if err != nil {
				t.Fatal(err)
			}
			w := rig.StartAgent(t, objects, "--accept-policy", policy, "--bpf", "require", "--workers", "2",
				"--http-address", four.String(), "--http-address", six.String())
			for i := range each {
				for _, addr := range []netip.AddrPort{four, six} {
					c := rig.Dial(t, addr)
					c.Send(rig.Get(host, fmt.Sprintf("/%d", i)))
					if m := c.Read("GET"); m.Status != 200 {
						t.Fatalf("connection %d to %s -> %d", i, addr, m.Status)
					}
				}
			}
			count := func(i int) float64 { return w.WorkerStats()[i]["Connections"].(float64) }
			for end := time.Now().Add(2 * time.Second); count(0)+count(1) != 2*each && time.Now().Before(end); {
				time.Sleep(5 * time.Millisecond)
			}
			a, b2 := count(0), count(1)
			if a+b2 != 2*each {
				t.Errorf("workers hold %v and %v connections, want %d together", a, b2, 2*each)
			}
			// One may have begun before the other's count was told.
			if policy == "least-loaded" && max(a, b2) > each+1 {
				t.Errorf("workers hold %v and %v connections, want as many each", a, b2)
			}
		})
	}
}

// TestCapabilities: exactly the documented ones suffice for steering, and without
// them the agent serves with the kernel's hash, or does not start if it must not.
func TestCapabilities(t *testing.T) {
	needRootForBPF(t)
	limited := func(set string) func(args ...string) *exec.Cmd {
		return func(args ...string) *exec.Cmd {
			return exec.Command("setpriv", append([]string{"--bounding-set", set, rig.Binary(t)}, args...)...)
		}
	}
	const host = "a.example.test"
	b := rig.NewRecorder(t, "a")
	objects := append(rig.Svc("t1", "a", b.Addr), rig.Ingress("t1", "i", rig.R(host, "/", "Prefix", "a")))
	for _, tt := range []struct{ name, set, bpf, policy, cause string }{
		{"enough", "-all,+bpf,+net_bind_service", "require", "least-loaded", ""},
		{"none", "-all", "auto", "hash", "denied"},
	} {
		w := rig.StartAgentCommand(t, limited(tt.set), objects, "--accept-policy", "least-loaded", "--bpf", tt.bpf)
		if v := w.Accept(); v.Policy != tt.policy || v.Cause != tt.cause {
			t.Errorf("%s: %+v, want policy %s because %q", tt.name, v, tt.policy, tt.cause)
		}
		if m := rig.Do(t, w.Addr, "GET", rig.Get(host, "/")); m.Status != 200 {
			t.Errorf("%s: answer %d, want 200", tt.name, m.Status)
		}
	}
	args := []string{"agent", "--manifests", t.TempDir(), "--http-address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0",
		"--accept-policy", "least-loaded", "--bpf", "require"}
	out, err := limited("-all")(args...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "BPF is required") {
		t.Errorf("required without capabilities: %v, %s; want that it does not start and why", err, out)
	}
}

// TestKilledAgentsLeaveNothingInTheWay: the next one starts at the same address and
// steers.
func TestKilledAgentsLeaveNothingInTheWay(t *testing.T) {
	needRootForBPF(t)
	const host = "a.example.test"
	b := rig.NewRecorder(t, "a")
	objects := append(rig.Svc("t1", "a", b.Addr), rig.Ingress("t1", "i", rig.R(host, "/", "Prefix", "a")))
	addr, err := rig.FreeAddr(rig.Loopback)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		w := rig.StartAgent(t, objects, "--accept-policy", "least-loaded", "--bpf", "require", "--http-address", addr.String())
		for range 10 {
			if m := rig.Do(t, addr, "GET", rig.Get(host, "/")); m.Status != 200 {
				t.Fatalf("agent %d answers %d, want 200", i, m.Status)
			}
		}
		w.Kill()
	}
}
