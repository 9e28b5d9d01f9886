package report

import (
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// addNode makes a node with pairs of type and address.
func (c *cluster) addNode(name string, pairs ...string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := 0; i < len(pairs); i += 2 {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(pairs[i]), Address: pairs[i+1]})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[name] = n
}

// onNode makes an agent of a node, that publishes the addresses of nodes.
func onNode(node string) func(*Config) {
	return func(c *Config) { c.Publish = Publish{Status: true, NodeName: node, ClearAtEnd: true} }
}

func TestTheNodesThatRunWeirArePublished(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		own := name("t1", "own")
		c.put(own, "")
		c.addNode("n1", "Hostname", "n1", "InternalIP", "10.0.0.1", "ExternalIP", "192.0.2.1")
		c.addNode("n2", "InternalIP", "10.0.0.2", "InternalIP", "fd00::2")
		c.addNode("n3", "InternalIP", "10.0.0.3") // runs no agent
		admitted := []types.NamespacedName{own}
		a := start(t, c, "a", onNode("n1"))
		a.Set(admitted, nil)
		after(5 * time.Second)
		if got := c.status(own); got != "192.0.2.1" {
			t.Errorf("status with one agent = %q, want its node's external address", got)
		}
		b := start(t, c, "b", onNode("n2"))
		b.Set(admitted, nil)
		after(presenceEvery)
		if got := c.status(own); got != "10.0.0.2 192.0.2.1 fd00::2" {
			t.Errorf("status with two agents = %q, want both nodes'", got)
		}
		// An agent that is replaced leaves no gap.
		writes := c.count("patch ingresses/status")
		b.end()
		after(20 * time.Second)
		b = start(t, c, "b2", onNode("n2"))
		b.Set(admitted, nil)
		after(10 * time.Minute)
		if got := c.count("patch ingresses/status"); got != writes {
			t.Errorf("%d writes while an agent is replaced, want none", got-writes)
		}
		// One that is gone for good is left out.
		b.end()
		most := absentAfter + 2*presenceEvery
		after(most)
		if got := c.status(own); got != "192.0.2.1" {
			t.Errorf("status %v after the second agent ended = %q, want the first's", most, got)
		}
		after(2 * forgetAfter)
		if leases := len(c.objLeases); leases != 2 {
			t.Errorf("%d Leases after %v, want 2: that of the agent that is gone is deleted", leases, 2*forgetAfter)
		}
	})
}

func TestAnAgentWithoutANodeNameSaysWhatToDo(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		own := name("t1", "own")
		c.put(own, "other", "192.0.2.9")
		a := start(t, c, "a", onNode(""))
		a.Set([]types.NamespacedName{own}, nil)
		after(time.Minute)
		if got := c.status(own); got != "192.0.2.9" {
			t.Errorf("status = %q, want it untouched", got)
		}
		if text := strings.Join(a.logs.lines(), "\n"); !strings.Contains(text, "NODE_NAME") || !strings.Contains(text, "no address to publish") {
			t.Errorf("log %q does not say what to do", text)
		}
	})
}

// What a wall clock says that jumps must not take nodes out of the status.
func TestAClockThatJumpsLosesNoNode(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		own := name("t1", "own")
		c.put(own, "")
		c.addNode("n1", "InternalIP", "10.0.0.1")
		c.addNode("n2", "InternalIP", "10.0.0.2")
		a, b := start(t, c, "a", onNode("n1")), start(t, c, "b", onNode("n2"))
		a.Set([]types.NamespacedName{own}, nil)
		after(time.Second)
		b.Set([]types.NamespacedName{own}, nil)
		after(time.Minute)
		jump := func(by time.Duration) {
			for range 20 {
				after(10 * time.Second)
				c.mu.Lock()
				for _, l := range c.objLeases {
					l.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(by)}
				}
				c.mu.Unlock()
			}
		}
		writes := c.count("patch ingresses/status")
		jump(-time.Hour)
		jump(time.Hour)
		if got := c.count("patch ingresses/status"); got != writes || c.status(own) != "10.0.0.1 10.0.0.2" {
			t.Errorf("%d writes, status = %q, want no change", got-writes, c.status(own))
		}
	})
}

// A Lease from long ago must not make a new leader publish a node that is gone.
func TestANewLeaderBelievesNoOldLease(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		own := name("t1", "own")
		c.put(own, "")
		c.addNode("n1", "InternalIP", "10.0.0.1")
		old := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "weir", Name: "weir.n9",
			Labels: map[string]string{presenceLabel: "weir"}, Annotations: map[string]string{addressesKey: "10.0.0.9"}}}
		old.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-2 * forgetAfter)}
		c.putLease(old)
		a := start(t, c, "a", onNode("n1"))
		a.Set([]types.NamespacedName{own}, nil)
		after(time.Minute)
		if c.count("delete leases") != 0 {
			t.Error("an old Lease was deleted at first sight, which a wrong clock may have caused")
		}
		if got := c.status(own); got != "10.0.0.1" || c.count("patch ingresses/status") != 1 {
			t.Errorf("status = %q after %d writes, want 10.0.0.1 at once", got, c.count("patch ingresses/status"))
		}
	})
}

func TestOnlyTheLastAgentRemovesStatuses(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		all := []types.NamespacedName{name("t1", "one"), name("t1", "two"), name("t1", "foreign")}
		for _, key := range all {
			c.put(key, "")
		}
		c.addNode("n1", "InternalIP", "10.0.0.1")
		c.addNode("n2", "InternalIP", "10.0.0.2")
		a, b := start(t, c, "a", onNode("n1")), start(t, c, "b", onNode("n2"))
		a.Set(all, nil)
		after(time.Second)
		b.Set(all, nil)
		after(time.Minute)
		a.end() // the leader, while another serves
		if got := c.status(all[0]); got != "10.0.0.1 10.0.0.2" {
			t.Errorf("status after the leader of two ended = %q, want it untouched", got)
		}
		c.overwrite(all[2], "another-controller", "192.0.2.9")
		b.end() // has not even noticed that nobody leads
		if got := [3]string{c.status(all[0]), c.status(all[1]), c.status(all[2])}; got != [3]string{"", "", "192.0.2.9"} {
			t.Errorf("statuses after the last agent ended = %q, want only the other controller's left", got)
		}
		if got := c.holder(); got != "" {
			t.Errorf("holder = %q, want nobody", got)
		}
	})
}

// The whole installation is removed: all agents end at about the same time.
func TestAgentsThatEndTogetherRemoveStatuses(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		own := name("t1", "own")
		c.put(own, "")
		var all []*reporting
		for _, n := range []string{"1", "2", "3"} {
			c.addNode("n"+n, "InternalIP", "10.0.0."+n)
			r := start(t, c, n, onNode("n"+n))
			r.Set([]types.NamespacedName{own}, nil)
			all = append(all, r)
			after(time.Second)
		}
		after(2 * presenceEvery)
		if got := c.status(own); got != "10.0.0.1 10.0.0.2 10.0.0.3" {
			t.Fatalf("status = %q, want all three", got)
		}
		for _, r := range all {
			r.stop()
			after(700 * time.Millisecond)
		}
		after(othersLeave)
		if got := c.status(own); got != "" {
			t.Errorf("status after all ended = %q, want none", got)
		}
	})
}

func TestStatusesStayAtTheEndOnRequest(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		own := name("t1", "own")
		c.put(own, "")
		a := start(t, c, "a", nil)
		a.Set([]types.NamespacedName{own}, nil)
		after(time.Minute)
		a.end()
		if got := c.status(own); got != "192.0.2.1" {
			t.Errorf("status = %q, want it untouched", got)
		}
	})
}

func TestTheEndIsBoundedAndCanBeCutShort(t *testing.T) {
	for _, kill := range []bool{false, true} {
		bubble(t, func(t *testing.T, c *cluster) {
			own := name("t1", "own")
			c.put(own, "")
			a := start(t, c, "a", func(c *Config) { c.Publish.ClearAtEnd = true })
			a.Set([]types.NamespacedName{own}, nil)
			after(time.Minute)
			a.Reporter.api.(*cluster).setRefuse(func(call string) error {
				if call == "list leases" {
					return apierrors.NewForbidden(of("leases"), "", errors.New("no rule"))
				}
				return nil
			})
			began := time.Now()
			a.stop()
			most := othersLeave + farewellTimeout + leaseTimeout
			if kill {
				after(time.Second)
				a.Kill()
				most = time.Second
			}
			<-a.done
			if took := time.Since(began); took > most {
				t.Errorf("killed %v: the end took %v, want at most %v", kill, took, most)
			}
			if got := c.status(own); got != "192.0.2.1" {
				t.Errorf("status = %q, want it left in doubt whether others serve", got)
			}
		})
	}
}

func TestWithoutTheRightToKeepLeasesTheLeaderKnowsItsOwnNode(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		own := name("t1", "own")
		c.put(own, "")
		c.addNode("n1", "InternalIP", "10.0.0.1")
		a := startBy(t, loner{c}, c, "a", onNode("n1"))
		a.Set([]types.NamespacedName{own}, nil)
		after(time.Minute)
		if got := c.status(own); got != "10.0.0.1" {
			t.Errorf("status = %q, want the own node's address", got)
		}
	})
}

// loner may make no Lease but that of the election.
type loner struct{ *cluster }

func (l loner) createLease(ctx ctx, o *lease) (*lease, error) {
	if o.Name != "weir" {
		return nil, apierrors.NewForbidden(of("leases"), o.Name, errors.New("no rule"))
	}
	return l.cluster.createLease(ctx, o)
}
