package netns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/pods"
	"github.com/weirproxy/weir/tests/rig"
)

// endpoints returns how many endpoints of the agent's only cluster are in a state.
func (c *churn) endpoints(state string) int {
	c.t.Helper()
	return int(c.agent.Metric(fmt.Sprintf(`weir_upstream_endpoints{cluster="t1/s:80",state=%q}`, state)))
}

// awaitLost waits until n endpoints are lost and returns how long that took.
func (c *churn) awaitLost(n int, since time.Time) time.Duration {
	c.t.Helper()
	rig.Eventually(c.t, rig.Deadline, fmt.Sprint(n, " lost endpoints"), func() error {
		if got := c.endpoints("lost"); got != n {
			return fmt.Errorf("%d are lost", got)
		}
		return nil
	})
	return time.Since(since)
}

// TestALostPodTakesNoRequests: its slice lists it as ready throughout.
func TestALostPodTakesNoRequests(t *testing.T) {
	for _, network := range []pods.Network{pods.Bridged, pods.Routed} {
		t.Run(string(network), func(t *testing.T) {
			c := &churn{node: newNode(t, network)}
			c.grow(4)
			load := (&rig.Pulse{Addr: c.agent.Addr, Host: "a.test", Target: "/", Rate: 300,
				Methods: []string{"GET", "PUT"}, Within: 5 * time.Second}).Start()
			pause(time.Second)
			c.pods[0].unplug()
			start := time.Now()
			if late := c.awaitLost(1, start); late > noticed {
				t.Errorf("out of rotation after %v, want %v at most", late, noticed)
			} else {
				t.Logf("out of rotation after %v", late)
			}
			pause(4 * time.Second)
			judge(t, load.Stop(), c.executed(), false)
			if got := c.endpoints("active"); got != 3 {
				t.Errorf("%d endpoints are active, want 3", got)
			}
			if _, body, err := c.agent.AdminGet("/debug/table"); err != nil || !strings.Contains(body, `"link": "`+c.pods[1].Link+`"`) {
				t.Errorf("/debug/table does not show that %s leads to %s: %v, %s", c.pods[1].Link, c.pods[1].Addr, err, body)
			}
		})
	}
}

func TestAClusterIsNeverEmptiedByLosses(t *testing.T) {
	c := &churn{node: newNode(t, pods.Routed)}
	c.grow(2)
	c.pods[0].unplug()
	c.awaitLost(1, time.Now())
	c.pods[1].unplug()
	c.awaitLost(0, time.Now()) // both are used again: nothing is better
	if got := c.endpoints("active"); got != 2 {
		t.Errorf("%d endpoints are active, want both", got)
	}
	if got := c.agent.Metric("weir_network_pods_lost"); got != 2 {
		t.Errorf("%v pods of the node are lost, want 2", got)
	}
	c.grow(1)
	c.awaitLost(2, time.Now())
}

// TestTheNodesOwnPodsAreNearest: the slices say which these are.
func TestTheNodesOwnPodsAreNearest(t *testing.T) {
	n := newNode(t, pods.Routed)
	var list []*pod
	var endpoints []rig.Endpoint
	for i := range 4 {
		p := n.newPod()
		list = append(list, p)
		endpoints = append(endpoints, rig.Endpoint{IP: p.Addr.String(), Ready: new(true), Node: fmt.Sprint("node-", i/2)})
	}
	service := rig.Service("t1", "s")
	service["spec"].(map[string]any)["trafficDistribution"] = "PreferSameNode"
	a := rig.StartAgent(t, []rig.Object{service, rig.Slice("t1", "s-1", "s", "", pods.Port, endpoints...),
		rig.Ingress("t1", "i", rig.R("a.test", "/", "Prefix", "s"))}, "--node-name", "node-0")
	answers := func() (from []netip.Addr) {
		for range 20 {
			m, err := rig.TryGet(a.Addr, "a.test", "/")
			if err != nil || m.Status != 200 {
				t.Fatalf("%+v, %v", m, err)
			}
			at, err := netip.ParseAddrPort(string(m.Body))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(from, at.Addr()) {
				from = append(from, at.Addr())
			}
		}
		slices.SortFunc(from, netip.Addr.Compare)
		return from
	}
	if got, want := answers(), []netip.Addr{list[0].Addr, list[1].Addr}; !slices.Equal(got, want) {
		t.Errorf("answers from %v, want both of the same node, %v", got, want)
	}
	list[0].kill() // refuses: the other one of the node takes over
	if got, want := answers(), []netip.Addr{list[1].Addr}; !slices.Equal(got, want) {
		t.Errorf("answers from %v, want the last one of the node, %v", got, want)
	}
	list[1].unplug() // is lost: spills over
	rig.Eventually(t, rig.Deadline, "spill-over", func() error {
		if got, want := answers(), []netip.Addr{list[2].Addr, list[3].Addr}; !slices.Equal(got, want) {
			return fmt.Errorf("answers from %v, want those of the other node, %v", got, want)
		}
		return nil
	})
}
