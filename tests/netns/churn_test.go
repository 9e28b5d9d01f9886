package netns

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/pods"
	"github.com/weirproxy/weir/tests/rig"
)

// churn is a service whose pods come and go under a constant load.
type churn struct {
	*node
	agent *rig.Agent
	pods  []*pod
}

// phases of a pod, as its slice shows them.
type phase int

const (
	ready phase = iota
	terminating
	absent
)

// publish writes the slice: all pods are ready but those in others.
func (c *churn) publish(others map[*pod]phase) {
	var list []rig.Endpoint
	for _, p := range c.pods {
		switch others[p] {
		case ready:
			list = append(list, rig.Ready(p.Addr.String())...)
		case terminating:
			list = append(list, rig.Endpoint{IP: p.Addr.String(), Ready: new(false), Serving: new(true), Terminating: new(true)})
		}
	}
	slice := rig.Slice("t1", "s-1", "s", "", pods.Port, list...)
	if c.agent != nil {
		c.agent.Put(slice)
		return
	}
	c.agent = rig.StartAgent(c.t, []rig.Object{rig.Service("t1", "s"), slice, rig.Ingress("t1", "i", rig.R("a.test", "/", "Prefix", "s"))})
}

// grow adds n pods, which serve before they are published.
func (c *churn) grow(n int) {
	for range n {
		c.pods = append(c.pods, c.newPod())
	}
	c.publish(nil)
}

// leave is how a pod goes: it must end with the pod gone from the slice.
type leave func(c *churn, p *pod)

// pause lets the load run on: it is part of the scenario, not a wait for
// something.
func pause(d time.Duration) { <-time.After(d) }

// shrink removes the n oldest pods.
func (c *churn) shrink(n int, how leave) {
	for _, p := range c.pods[:n] {
		how(c, p)
		pause(50 * time.Millisecond)
	}
	c.pods = c.pods[n:]
}

// one publishes the slice with pod p in a phase and the other pods as they are.
func (c *churn) one(p *pod, as phase) {
	gone := map[*pod]phase{p: as}
	for _, q := range c.pods { // older ones have left already
		if q == p {
			break
		}
		gone[q] = absent
	}
	c.publish(gone)
}

// killThenRemove is a crash: the slice learns of it 200 ms later.
func killThenRemove(c *churn, p *pod) {
	p.kill()
	pause(200 * time.Millisecond)
	c.one(p, absent)
}

// removeThenKill is a deletion that was published in time.
func removeThenKill(c *churn, p *pod) {
	c.one(p, absent)
	pause(500 * time.Millisecond)
	p.kill()
}

// terminateThenKill is a deletion as the kubelet does it.
func terminateThenKill(c *churn, p *pod) {
	c.one(p, terminating)
	pause(500 * time.Millisecond)
	p.kill()
	c.one(p, absent)
}

// unplugThenRemove loses the address without a reset, 200 ms before the slice
// knows.
func unplugThenRemove(c *churn, p *pod) {
	p.unplug()
	pause(200 * time.Millisecond)
	c.one(p, absent)
}

// TestBackendsComeAndGoWithoutAFailedRequest: 4 -> 8 -> 2 -> 4 pods. posts says
// whether a POST may be answered 502 or 504 because it may have been executed.
func TestBackendsComeAndGoWithoutAFailedRequest(t *testing.T) {
	for _, c := range []struct {
		name    string
		network pods.Network
		how     leave
		posts   bool
	}{
		{"killed before removal", pods.Bridged, killThenRemove, true},
		{"removed before killed", pods.Bridged, removeThenKill, false},
		{"terminating, then killed", pods.Bridged, terminateThenKill, false},
		{"unplugged from a bridge", pods.Bridged, unplugThenRemove, true},
		{"unplugged from a route", pods.Routed, unplugThenRemove, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &churn{node: newNode(t, c.network)}
			s.grow(4)
			load := (&rig.Pulse{Addr: s.agent.Addr, Host: "a.test", Target: "/", Rate: 300,
				Methods: []string{"GET", "POST", "PUT", "GET"}, Within: 5 * time.Second}).Start()
			pause(time.Second)
			s.grow(4)
			pause(time.Second)
			s.shrink(6, c.how)
			pause(time.Second)
			s.grow(2)
			pause(time.Second)
			judge(t, load.Stop(), s.executed(), c.posts)
		})
	}
}

// judge holds shots against what the pods executed.
func judge(t *testing.T, shots []rig.Shot, executed map[string]int, posts bool) {
	t.Helper()
	var slowest rig.Shot
	failed := map[string]int{}
	for _, s := range shots {
		if s.Took > slowest.Took {
			slowest = s
		}
		times := executed[s.Method+" "+s.ID]
		if s.Method == "POST" && times > 1 {
			t.Errorf("executed %d times: %v", times, s)
		}
		if s.Err == nil && s.Status == 200 {
			if times == 0 {
				t.Errorf("answered, but never executed: %v", s)
			}
			continue
		}
		failed[s.Method]++
		allowed := posts && s.Method == "POST" && s.Err == nil && (s.Status == 502 || s.Status == 504)
		if !allowed {
			t.Errorf("failed: %v", s)
		}
	}
	if slowest.Took > time.Second {
		t.Errorf("over 1 s: %v", slowest)
	}
	t.Logf("%d requests, failed by method: %v, slowest %v", len(shots), failed, slowest.Took.Round(time.Millisecond))
	if len(shots) < 1000 {
		t.Errorf("only %d requests were made", len(shots))
	}
}
