package feature

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// TestEveryAcceptPolicyServes: 40 connections at a time, 2 workers.
func TestEveryAcceptPolicyServes(t *testing.T) {
	const connections = 40
	for _, c := range []struct {
		policy string
		flags  []string
		spread func(first, second float64) bool
	}{
		{"shared", nil, func(a, b float64) bool { return a+b >= connections }},
		{"fountain", []string{"--fountain-mark", "8"}, func(a, b float64) bool { return a >= 8 && b > 0 }},
		// A hash that leaves one of two workers out has a chance of 2^-39.
		{"hash", nil, func(a, b float64) bool { return a > 0 && b > 0 }},
	} {
		t.Run(c.policy, func(t *testing.T) {
			w := newWorld(t, append([]string{"--accept-policy", c.policy}, c.flags...)...)
			for i := range connections {
				conn := rig.Dial(t, w.Addr)
				for j := range 3 {
					conn.Send(rig.Get(host, fmt.Sprintf("/%d/%d", i, j)))
					if m := conn.Read("GET"); m.Status != 200 {
						t.Fatalf("connection %d, request %d -> %d", i, j, m.Status)
					}
				}
			}
			stats := w.WorkerStats()
			if len(stats) != 2 {
				t.Fatalf("%d workers, want 2", len(stats))
			}
			count := func(i int, key string) float64 { return stats[i][key].(float64) }
			if got := count(0, "Requests") + count(1, "Requests"); got != 3*connections {
				t.Errorf("workers count %v requests, want %d", got, 3*connections)
			}
			if got := count(0, "Accepted") + count(1, "Accepted"); got != connections {
				t.Errorf("workers accepted %v connections, want %d", got, connections)
			}
			if a, b := count(0, "Connections"), count(1, "Connections"); !c.spread(a, b) {
				t.Errorf("connections of the workers: %v and %v", a, b)
			}
		})
	}
}

// TestAFullWorkerLeavesConnectionsToTheOthers: workers share a limit of 40
// connections, so one of them is full before the other.
func TestAFullWorkerLeavesConnectionsToTheOthers(t *testing.T) {
	const connections = 40
	for _, policy := range []string{"shared", "fountain"} {
		t.Run(policy, func(t *testing.T) {
			w := newWorld(t, "--accept-policy", policy, "--connections-max", fmt.Sprint(connections))
			for i := range connections {
				conn := rig.Dial(t, w.Addr)
				conn.Send(rig.Get(host, "/"))
				if m, err := conn.TryRead("GET", 2*time.Second); err != nil || m.Status != 200 {
					t.Fatalf("connection %d: %+v, %v, want it served; workers: %v", i+1, m, err, w.WorkerStats())
				}
			}
		})
	}
}

func TestAnIPv6Listener(t *testing.T) {
	addr, err := rig.FreeAddr(netip.IPv6Loopback())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "--http-address", addr.String())
	m := rig.Do(t, addr, "GET", rig.Get(host, "/", "X-Forwarded-For: 6.6.6.6"))
	if m.Status != 200 {
		t.Errorf("over IPv6 -> %d, want 200", m.Status)
	}
	if got := w.backend.Last(t).Value("X-Forwarded-For"); got != "::1" {
		t.Errorf("X-Forwarded-For: %q, want ::1", got)
	}
	m = rig.Do(t, addr, "GET", rig.Get(fmt.Sprintf("[::1]:%d", addr.Port()), "/"))
	if m.Status != 404 {
		t.Errorf("literal as host -> %d, want 404", m.Status)
	}
}

// TestAnIPv6Endpoint: a dual-stack service with one endpoint of each family.
func TestAnIPv6Endpoint(t *testing.T) {
	six, err := rig.FreeAddr(netip.IPv6Loopback())
	if err != nil {
		t.Fatal(err)
	}
	rig.NewRecorderAt(t, "six", six)
	four := rig.NewRecorder(t, "four")
	objects := []rig.Object{rig.Service("t1", "s"), rig.Ingress("t1", "i", rig.R(host, "/", "Prefix", "s")),
		rig.Slice("t1", "s-4", "s", "", int(four.Addr.Port()), rig.Ready("127.0.0.1")...),
		rig.Slice("t1", "s-6", "s", "", int(six.Port()), rig.Ready("::1")...)}
	a := rig.StartAgent(t, objects, "--workers", "1")
	got := map[string]int{}
	for range 10 {
		got[string(rig.Do(t, a.Addr, "GET", rig.Get(host, "/")).Body)]++
	}
	if got["four"] != 5 || got["six"] != 5 {
		t.Errorf("answers by endpoint: %v, want 5 of each", got)
	}
}
