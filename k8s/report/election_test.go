package report

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// leading returns which of list lead.
func leading(list ...*reporting) (out []string) {
	for _, r := range list {
		if r.Stats().Leading {
			out = append(out, r.config.Identity)
		}
	}
	return out
}

func TestOneOfSeveralLeads(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		var all []*reporting
		for _, agent := range []string{"a", "b", "c"} {
			r := start(t, c, agent, nil)
			r.Set(nil, nil)
			all = append(all, r)
		}
		for range 60 {
			after(2 * time.Second)
			if got := leading(all...); len(got) != 1 || got[0] != c.holder() {
				t.Fatalf("leading = %v, holder = %q, want one, the same", got, c.holder())
			}
		}
		if reads := c.count("get leases"); reads > 2*120/15+4 {
			t.Errorf("%d reads of Leases in 120 s by two that wait, want one each in 15 to 18 s", reads)
		}
	})
}

func TestNobodyLeadsBeforeThereIsSomethingToReport(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := start(t, c, "a", nil)
		after(time.Minute)
		if len(c.calls) != 0 || r.Stats().Leading {
			t.Errorf("calls before the first Set = %v, want none", c.calls)
		}
	})
}

func TestALeadThatIsGivenUpIsTakenSoon(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		a, b := start(t, c, "a", nil), start(t, c, "b", nil)
		a.Set(nil, nil)
		after(time.Second)
		b.Set(nil, nil)
		after(time.Minute)
		a.end()
		if got := c.holder(); got != "" {
			t.Errorf("holder after a stopped = %q, want nobody", got)
		}
		after(leaseDuration + lookSpread)
		if got := leading(a, b); len(got) != 1 || got[0] != "b" {
			t.Errorf("leading %v after a stopped = %v, want b", leaseDuration+lookSpread, got)
		}
	})
}

// A leader that hangs must have stopped before another begins.
func TestALeaderThatCannotRenewStopsBeforeAnotherBegins(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		way := &brittle{cluster: c}
		a, b := startBy(t, way, c, "a", nil), start(t, c, "b", nil)
		a.Set(nil, nil)
		after(time.Second)
		b.Set(nil, nil)
		after(time.Minute)
		way.cut.Store(true)
		var aStopped, bBegan time.Duration
		for at := time.Duration(0); at < 2*time.Minute && bBegan == 0; at += 100 * time.Millisecond {
			after(100 * time.Millisecond)
			if aStopped == 0 && !a.Stats().Leading {
				aStopped = at
			}
			if b.Stats().Leading {
				bBegan = at
			}
		}
		most := 2 * (leaseDuration + lookSpread)
		if aStopped == 0 || aStopped > renewDeadline || bBegan < aStopped+leaseDuration-renewDeadline || bBegan > most {
			t.Errorf("a stopped after %v, b began after %v; want a within %v, b %v later at least, and within %v",
				aStopped, bBegan, renewDeadline, leaseDuration-renewDeadline, most)
		}
	})
}

// brittle is a way to the API server on which, once it is cut, no request about
// the Lease gets an answer.
type brittle struct {
	*cluster
	cut atomic.Bool
}

func (b *brittle) updateLease(ctx ctx, l *lease) (*lease, error) {
	if b.cut.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return b.cluster.updateLease(ctx, l)
}

func (b *brittle) lease(ctx ctx, key types.NamespacedName, cached bool) (*lease, error) {
	if b.cut.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return b.cluster.lease(ctx, key, cached)
}

func TestALeaderWhoseLeaseWasTakenStops(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		a := start(t, c, "a", nil)
		a.Set(nil, nil)
		after(time.Second)
		c.mu.Lock()
		l := c.objLeases[name("weir", "weir")].DeepCopy()
		other := "other_1"
		l.Spec.HolderIdentity = &other
		c.putLease(l)
		c.mu.Unlock()
		after(renewEvery)
		if a.Stats().Leading || c.holder() != "other" {
			t.Errorf("leading = %v, holder = %q, want the other alone", a.Stats().Leading, c.holder())
		}
	})
}

func TestALeaseThatSomebodyAnnotatedIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		a := start(t, c, "a", nil)
		a.Set(nil, nil)
		for range 20 {
			after(3 * time.Second)
			c.mu.Lock()
			l := c.objLeases[name("weir", "weir")].DeepCopy()
			l.Annotations = map[string]string{"touched": "by hand"}
			c.putLease(l)
			c.mu.Unlock()
			if !a.Stats().Leading {
				t.Fatal("leads no more")
			}
		}
		after(renewEvery + renewRetry)
		if l := c.objLeases[name("weir", "weir")]; !a.Stats().Leading || l.Annotations["touched"] == "" {
			t.Errorf("leading = %v, annotations = %v, want both kept", a.Stats().Leading, l.Annotations)
		}
	})
}

func TestAnApiServerThatIsAwayIsAskedLessAndLess(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want string // in the log
	}{
		{"unreachable", errDown, "Unreachable"},
		{"forbidden", apierrors.NewForbidden(of("leases"), "weir", errors.New("no rule")), "docs/rbac.md"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster) {
				c.setRefuse(func(string) error { return tt.err })
				a := start(t, c, "a", nil)
				a.Set(nil, nil)
				after(20 * time.Minute)
				calls := 0
				for _, n := range c.calls {
					calls += n
				}
				if calls < 20 || calls > 100 {
					t.Errorf("%d calls in 20 min, want 20 to 100", calls)
				}
				var warned int
				for _, line := range a.logs.lines() {
					if strings.HasPrefix(line, "WARN") && strings.Contains(line, tt.want) {
						warned++
					}
				}
				if warned < 2 || warned > 8 {
					t.Errorf("%d warnings with %q in 20 min, want 2 to 8: %q", warned, tt.want, a.logs.lines())
				}
				c.setRefuse(nil)
				after(lookMost)
				if !a.Stats().Leading {
					t.Errorf("does not lead %v after the API server came back", lookMost)
				}
			})
		})
	}
}
