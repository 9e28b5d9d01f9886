package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// manager is the field manager of the reporters that start makes.
const manager = "weir/weir/weir"

// led runs one reporter that leads, and hears of every status that is written.
func led(t *testing.T, c *cluster, edit func(*Config)) *reporting {
	t.Helper()
	r := start(t, c, "a", edit)
	c.changed = r.StatusChanged
	return r
}

func TestTheStatusOfAdmittedIngressesIsWrittenOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		own, other := name("t1", "own"), name("t2", "thief")
		c.put(own, "")
		c.put(other, "")
		r := led(t, c, func(c *Config) {
			c.Publish.Addresses = []string{"lb.example.test", "192.0.2.7", "2001:db8::1", "192.0.2.7"}
		})
		r.Set([]types.NamespacedName{own}, nil)
		after(time.Minute)
		if got, want := c.status(own), "lb.example.test 192.0.2.7 2001:db8::1"; got != want {
			t.Errorf("status = %q, want %q", got, want)
		}
		if got := c.status(other); got != "" {
			t.Errorf("status of one that is not admitted = %q, want none", got)
		}
		for range 5 {
			r.Set([]types.NamespacedName{own}, nil)
			after(time.Minute)
		}
		if got := c.count("patch ingresses/status"); got != 1 {
			t.Errorf("%d writes, want 1", got)
		}
	})
}

func TestAStatusThatSaysTheSameInAnotherOrderIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		own := name("t1", "own")
		c.put(own, "other")
		c.ingresses[own].Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.2"}, {IP: "192.0.2.1"}}
		r := led(t, c, func(c *Config) { c.Publish.Addresses = []string{"192.0.2.1", "192.0.2.2"} })
		r.Set([]types.NamespacedName{own}, nil)
		after(time.Minute)
		if got := c.count("patch ingresses/status"); got != 0 {
			t.Errorf("%d writes, want none", got)
		}
	})
}

func TestWhatIsNoLongerAdmittedLosesWhatWeirWroteAndNothingElse(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		lost, moved, stays := name("t1", "lost"), name("t1", "moved"), name("t1", "stays")
		r := led(t, c, nil)
		for _, key := range []types.NamespacedName{lost, moved, stays} {
			c.put(key, "")
		}
		r.Set([]types.NamespacedName{lost, moved, stays}, nil)
		after(time.Minute)
		c.changed = nil
		c.overwrite(moved, "another-controller", "192.0.2.1") // at the same address
		r.Set([]types.NamespacedName{stays}, nil)
		after(time.Minute)
		for key, want := range map[types.NamespacedName]string{lost: "", moved: "192.0.2.1", stays: "192.0.2.1"} {
			if got := c.status(key); got != want {
				t.Errorf("status of %s = %q, want %q", key, got, want)
			}
		}
		if got := r.Stats(); got.StatusWrites != 3 || got.StatusRemovals != 1 {
			t.Errorf("stats = %+v, want 3 writes and 1 removal", got)
		}
	})
}

// What a leader before this one wrote to an Ingress that is not served any more.
func TestANewLeaderRemovesWhatIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		left, foreign, otherInstallation := name("t1", "left"), name("t1", "foreign"), name("t1", "shard")
		c.put(left, manager, "192.0.2.1")
		c.put(foreign, "another-controller", "192.0.2.1")
		c.put(otherInstallation, "weir/weir/shard-b", "192.0.2.1")
		r := led(t, c, nil)
		r.Set(nil, nil)
		after(time.Minute)
		if got := [3]string{c.status(left), c.status(foreign), c.status(otherInstallation)}; got != [3]string{"", "192.0.2.1", "192.0.2.1"} {
			t.Errorf("statuses = %q, want only the first emptied", got)
		}
	})
}

func TestNewAddressesReplaceTheOld(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		own, service := name("t1", "own"), name("infra", "lb")
		c.put(own, "")
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "lb"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
		c.services[service] = s
		r := led(t, c, func(c *Config) { c.Publish.Addresses, c.Publish.Service = nil, "infra/lb" })
		r.Set([]types.NamespacedName{own}, nil)
		after(10 * time.Second)
		if got := c.count("patch ingresses/status"); got != 0 {
			t.Errorf("%d writes without an address, want none", got)
		}
		for _, ip := range []string{"192.0.2.8", "192.0.2.9"} {
			s = s.DeepCopy()
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
			c.watches[len(c.watches)-1].Modify(s)
			after(10 * time.Second)
			if got := c.status(own); got != ip {
				t.Errorf("status = %q, want that of the Service, %s", got, ip)
			}
		}
		// A Service that is gone, or a watch that breaks, changes nothing.
		c.mu.Lock()
		delete(c.services, service)
		c.mu.Unlock()
		c.watches[0].Delete(s)
		after(10 * time.Minute)
		if got := c.status(own); got != "192.0.2.9" {
			t.Errorf("status without the Service = %q, want what was there", got)
		}
		if got := c.count("list services"); got < 10 || got > 60 {
			t.Errorf("%d lists in 10 min without the Service, want 10 to 60", got)
		}
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb.example.test"}}
		c.mu.Lock()
		c.services[service] = s
		c.mu.Unlock()
		after(time.Minute)
		if got := c.status(own); got != "lb.example.test" {
			t.Errorf("status with the Service back = %q, want its name", got)
		}
	})
}

// Two controllers in charge of one class must not write against each other without
// end.
func TestAnotherWriterIsAnsweredLessAndLess(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		own := name("t1", "own")
		c.put(own, "another-controller", "198.51.100.1")
		r := led(t, c, nil)
		r.Set([]types.NamespacedName{own}, nil)
		writes := 0
		for range 24 * 60 {
			after(time.Minute)
			if c.status(own) != "198.51.100.1" {
				writes++
				c.overwrite(own, "another-controller", "198.51.100.1")
			}
		}
		if writes < 24 || writes > 40 {
			t.Errorf("%d writes in a day against another writer, want about one per hour", writes)
		}
		warned := 0
		for _, line := range r.logs.lines() {
			if strings.Contains(line, "another controller") {
				warned++
			}
		}
		if warned != 1 {
			t.Errorf("%d warnings of another writer, want 1", warned)
		}
	})
}

func TestAStatusThatSomebodyEditedIsRestored(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		own := name("t1", "own")
		c.put(own, "")
		r := led(t, c, nil)
		r.Set([]types.NamespacedName{own}, nil)
		after(time.Hour)
		for n := range 5 { // now and then
			c.overwrite(own, "kubectl-edit")
			after(contestFirst + time.Second)
			if got := c.status(own); got != "192.0.2.1" {
				t.Errorf("status %v after edit %d = %q, want it restored", contestFirst, n, got)
			}
			after(time.Hour)
		}
		// What is put right meanwhile is left.
		writes := c.count("patch ingresses/status")
		c.overwrite(own, "kubectl-edit")
		after(contestFirst / 2)
		c.overwrite(own, "kubectl-edit", "192.0.2.1")
		after(time.Hour)
		if got := c.count("patch ingresses/status"); got != writes {
			t.Errorf("%d writes of what was right again, want none", got-writes)
		}
	})
}

func TestThousandsOfStatusesAreWrittenAtTheRate(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		var all []types.NamespacedName
		for n := range 1000 {
			all = append(all, name("t1", fmt.Sprint("i", n)))
			c.put(all[n], "")
		}
		r := led(t, c, nil)
		r.Set(all, nil)
		last := 0
		for second := range 60 {
			after(time.Second)
			now := c.count("patch ingresses/status")
			most := 20 + 1
			if second == 0 {
				most += 50 // at once
			}
			if now-last > most {
				t.Errorf("%d writes in second %d, want at most %d", now-last, second, most)
			}
			last = now
		}
		if last != 1000 {
			t.Errorf("%d writes in 60 s, want all 1000", last)
		}
	})
}

func TestErrorsOfOneStatusDoNotStopOthers(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		var all []types.NamespacedName
		for n := range 50 {
			all = append(all, name("t1", fmt.Sprint("i", n)))
			c.put(all[n], "")
		}
		calls := 0
		c.setRefuse(func(call string) error {
			if call != "patch ingresses/status" {
				return nil
			}
			if calls++; calls <= 20 {
				return apierrors.NewForbidden(of("ingresses"), "x", errors.New("no rule"))
			}
			return nil
		})
		r := led(t, c, nil)
		r.Set(all, nil)
		after(time.Second)
		written := 0
		for _, key := range all {
			if c.status(key) != "" {
				written++
			}
		}
		if written != 30 {
			t.Errorf("%d statuses written while 20 are refused, want 30", written)
		}
		after(time.Minute)
		if got := r.Stats(); got.StatusWrites != 50 || got.StatusErrors != 20 {
			t.Errorf("stats = %+v, want 50 writes and 20 errors", got)
		}
	})
}

func TestAnApiServerThatIsAwayIsNotFloodedWithStatuses(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		var all []types.NamespacedName
		for n := range 500 {
			all = append(all, name("t1", fmt.Sprint("i", n)))
			c.put(all[n], "")
		}
		r := led(t, c, nil)
		r.Set(nil, nil)
		after(time.Second)
		c.setRefuse(func(call string) error {
			if call == "patch ingresses/status" {
				return errDown
			}
			return nil
		})
		r.Set(all, nil)
		after(10 * time.Minute)
		if got := c.count("patch ingresses/status"); got < 10 || got > 200 {
			t.Errorf("%d writes tried in 10 min, want 10 to 200", got)
		}
		c.setRefuse(nil)
		after(gateMost + 30*time.Second)
		for _, key := range all {
			if c.status(key) == "" {
				t.Fatalf("%s has no status after the API server came back", key)
			}
		}
	})
}

func TestARecreatedIngressIsNotMistakenForTheOldOne(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		own := name("t1", "own")
		c.put(own, manager, "192.0.2.9")
		r := led(t, c, nil)
		first := true
		c.setRefuse(func(call string) error {
			if call == "patch ingresses/status" && first {
				first = false
				i := c.ingresses[own].DeepCopy()
				i.UID, i.ResourceVersion = "new", c.next()
				c.ingresses[own] = i
			}
			return nil
		})
		r.Set([]types.NamespacedName{own}, nil)
		after(time.Minute)
		if got := r.Stats(); got.StatusConflicts != 1 || c.status(own) != "192.0.2.1" {
			t.Errorf("stats = %+v, status = %q, want one conflict, then the write", got, c.status(own))
		}
	})
}

func TestStatusesAreLeftAloneOnRequest(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		own, left := name("t1", "own"), name("t1", "left")
		c.put(own, "")
		c.put(left, manager, "192.0.2.1")
		r := led(t, c, func(c *Config) { c.Publish = Publish{ClearAtEnd: true} })
		r.Set([]types.NamespacedName{own}, nil)
		after(time.Minute)
		r.end()
		if c.status(own) != "" || c.status(left) != "192.0.2.1" || c.count("get ingresses") != 0 {
			t.Errorf("statuses = %q, %q, want them untouched", c.status(own), c.status(left))
		}
	})
}

func TestWhoWroteAStatus(t *testing.T) {
	entry := func(manager, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const list = `{"f:status":{"f:loadBalancer":{"f:ingress":{}}}}`
	for _, tt := range []struct {
		name string
		of   metav1.ManagedFieldsEntry
		want bool
	}{
		{"ours", entry("m", "status", list), true},
		{"another's", entry("n", "status", list), false},
		{"ours, but not the list", entry("m", "status", `{"f:status":{"f:loadBalancer":{}}}`), false},
		{"ours, but the object", entry("m", "", list), false},
		{"garbage", entry("m", "status", `{"f:status":[`), false},
		{"no fields", metav1.ManagedFieldsEntry{Manager: "m", Subresource: "status"}, false},
	} {
		if got := wrote("m", []metav1.ManagedFieldsEntry{entry("x", "", "{}"), tt.of}); got != tt.want {
			t.Errorf("%s: wrote = %v, want %v", tt.name, got, tt.want)
		}
	}
}
