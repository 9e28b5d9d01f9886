package netns

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/pods"
	"github.com/weirproxy/weir/tests/rig"
)

// TestASilentPodIsLeftBeforeItsSliceKnows: a pod loses its address while idle
// connections to it wait for requests; the node sees no link go. Its kernel
// acknowledges nothing, which is told from a slow answer long before a node is
// declared dead.
func TestASilentPodIsLeftBeforeItsSliceKnows(t *testing.T) {
	c := &churn{node: newNode(t, pods.Bridged)}
	c.grow(4)
	load := (&rig.Pulse{Addr: c.agent.Addr, Host: "a.test", Target: "/", Rate: 300,
		Methods: []string{"GET", "PUT"}, Within: 5 * time.Second}).Start()
	pause(time.Second)
	gone := c.pods[0]
	gone.silence()
	pause(2500 * time.Millisecond)
	c.one(gone, absent)
	pause(500 * time.Millisecond)
	judge(t, load.Stop(), c.executed(), false)
	if n := c.agent.Metric("weir_upstream_abandoned_total"); n == 0 {
		t.Error("nothing was abandoned: no request met the silent pod")
	}
}
