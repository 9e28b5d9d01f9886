package watch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/k8s"
)

// TestEditsTellAllThatDiffers changes a store at random. Whoever follows nothing but
// the edits and the slices must have the same as the whole set, and the whole set must be
// what the store holds and counts.
func TestEditsTellAllThatDiffers(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 3))
		c := newClocked(t)
		c.selector = true
		c.feeds[namespaceKind] = &feed{kind: namespaceKind}
		c.open(c.feeds[namespaceKind])
		c.begin()
		mirror := k8s.NewObjects()
		for range 200 {
			namespace, n := fmt.Sprint("t", random.IntN(2)), random.IntN(4)
			leads, name := fmt.Sprint("s", n), fmt.Sprint("x", random.IntN(5))
			gone := random.IntN(3) == 0
			switch random.IntN(6) {
			case 0:
				c.change(ingressKind, ingress(namespace, name, leads, fmt.Sprint("secret", n)), gone)
			case 1:
				x := service(namespace, leads)
				x.Spec.Ports[0].Port = int32(80 + random.IntN(2))
				c.change(serviceKind, x, gone)
			case 2, 3:
				c.change(sliceKind, slice(namespace, fmt.Sprint(leads, "-", random.IntN(2)), fmt.Sprint("s", random.IntN(4)), fmt.Sprint("10.0.0.", random.IntN(9))), gone)
			case 4:
				o := &corev1.Namespace{}
				o.Name = namespace
				c.change(namespaceKind, o, gone)
			case 5:
				c.change(classKind, ingressClass([]string{"weir.io/ingress", "other"}[random.IntN(2)]), false)
			}
			if random.IntN(3) == 0 {
				c.pass(time.Second)
				c.secretsWanted(nil)
			}
			for {
				change, _ := c.next()
				if change == nil {
					break
				}
				c.mirror(mirror, change)
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

// change puts o, or removes what has its name.
func (c *clocked) change(k *kind, o metav1.Object, gone bool) {
	c.t.Helper()
	if gone {
		c.store.remove(c.feeds[k], keyOf(o), c.time)
		return
	}
	c.put(k, o)
}

// mirror follows a change in m, and compares.
func (c *clocked) mirror(m *k8s.Objects, change *k8s.Change) {
	c.t.Helper()
	if change.Objects == nil {
		for k, s := range change.Slices {
			set(m.EndpointSlices, k, s, s != nil)
		}
		return
	}
	o := change.Objects
	for k := range o.Edits.Ingresses {
		set(m.Ingresses, k, o.Ingresses[k], o.Ingresses[k] != nil)
	}
	for k := range o.Edits.Services {
		set(m.Services, k, o.Services[k], o.Services[k] != nil)
	}
	for k := range o.Edits.EndpointSlices {
		set(m.EndpointSlices, k, o.EndpointSlices[k], o.EndpointSlices[k] != nil)
	}
	c.same("edits", m, o)
	c.same("store", c.holds(), o)
}

func set[T any](m map[key]T, k key, o T, there bool) {
	if delete(m, k); there {
		m[k] = o
	}
}

func (c *clocked) same(what string, got, want *k8s.Objects) {
	c.t.Helper()
	if !maps.Equal(got.Ingresses, want.Ingresses) || !maps.Equal(got.Services, want.Services) || !maps.Equal(got.EndpointSlices, want.EndpointSlices) {
		c.t.Errorf("by the %s there are Ingresses %v, Services %v, slices %v; but told were %v, %v, %v", what,
			namesIn(got.Ingresses), namesIn(got.Services), namesIn(got.EndpointSlices), namesIn(want.Ingresses), namesIn(want.Services), namesIn(want.EndpointSlices))
	}
}

func namesIn[T any](m map[key]T) (out []string) {
	for k := range m {
		out = append(out, k.String())
	}
	return out
}

// holds returns what the tables hold that is visible and that Ingresses of ours lead
// to.
func (c *clocked) holds() *k8s.Objects {
	o := k8s.NewObjects()
	class := c.tables[classKind][key{Name: "weir"}]
	ours := class != nil && class.object.(*networkingv1.IngressClass).Spec.Controller == "weir.io/ingress"
	lead := make(map[key]bool)
	for k, e := range c.tables[ingressKind] {
		if c.tables[namespaceKind][key{Name: k.Namespace}] == nil {
			continue
		}
		i := e.object.(*networkingv1.Ingress)
		o.Ingresses[k] = i
		if ours {
			lead[key{Namespace: k.Namespace, Name: i.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name}] = true
		}
	}
	for k, e := range c.tables[serviceKind] {
		if lead[k] {
			o.Services[k] = e.object.(*corev1.Service)
		}
	}
	for k, e := range c.tables[sliceKind] {
		switch {
		case lead[e.service]:
			o.EndpointSlices[k] = e.object.(*discoveryv1.EndpointSlice)
		case e.object != nil:
			c.t.Errorf("slice %s is kept decoded, but nobody leads to %s", k, e.service)
		}
	}
	return o
}
