package watch

import (
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/k8s"
)

// clocked is a store with a clock of its own, whose feeds are in step and which has
// told the first set.
type clocked struct {
	*store
	t     *testing.T
	time  time.Time
	feeds map[*kind]*feed
}

func newClocked(t *testing.T) *clocked {
	c := &clocked{store: newStore(k8s.Options{}, false, nil), t: t, time: time.Unix(1000, 0), feeds: make(map[*kind]*feed)}
	c.now = func() time.Time { return c.time }
	for _, k := range []*kind{ingressKind, classKind, serviceKind, sliceKind} {
		f := &feed{kind: k}
		c.feeds[k] = f
		c.open(f)
	}
	return c
}

// begin makes all feeds be in step.
func (c *clocked) begin() {
	for _, f := range c.feeds {
		c.replace(f, nil)
		c.live(f)
	}
}

func (c *clocked) put(k *kind, o metav1.Object) {
	c.t.Helper()
	e, err := pack(o, "1")
	if err != nil {
		c.t.Fatal(err)
	}
	c.store.put(c.feeds[k], keyOf(o), e, c.time)
}

// asks fails if what is told now is another than want: "whole", "slices" or when to
// ask again.
func (c *clocked) asks(what, want string) *k8s.Change {
	c.t.Helper()
	change, wait := c.next()
	if change != nil && change.Objects != nil {
		change.Objects = change.Objects.Clone() // its maps are not for later
	}
	got := wait.String()
	switch {
	case change == nil:
	case change.Objects != nil:
		got = "whole"
	default:
		got = "slices"
	}
	if got != want {
		c.t.Errorf("%s: %s, want %s", what, got, want)
	}
	return change
}

func (c *clocked) pass(d time.Duration) { c.time = c.time.Add(d) }

func TestTheFirstSetWaitsForEveryFeed(t *testing.T) {
	c := newClocked(t)
	c.asks("no feed is in step", "0s")
	for k, f := range c.feeds {
		c.asks(k.name+" is missing", "0s")
		c.replace(f, nil)
	}
	c.asks("all feeds are in step", "whole")
	c.asks("nothing happened", "0s")
}

func TestTheFirstSetWaitsForSecrets(t *testing.T) {
	c := newClocked(t)
	i, class := ingress("t1", "tls", "web", "cert"), ingressClass("weir.io/ingress")
	all := make(map[*kind]map[key]*entry)
	for k, o := range map[*kind]metav1.Object{ingressKind: i, classKind: class} {
		e, err := pack(o, "1")
		if err != nil {
			t.Fatal(err)
		}
		all[k] = map[key]*entry{keyOf(o): e}
	}
	for k, f := range c.feeds {
		c.replace(f, all[k])
	}
	c.asks("the Secret has no feed yet", "0s")
	missing, surplus := c.secretsWanted(nil)
	if len(missing) != 1 || missing[0] != at("t1", "cert") || len(surplus) != 0 {
		t.Fatalf("Secrets wanted %v, not wanted %v; want t1/cert", missing, surplus)
	}
	f := &feed{kind: secretKind, scope: scope{namespace: "t1", name: "cert"}}
	c.open(f)
	c.asks("the Secret is not read yet", "0s")
	c.replace(f, nil)
	c.asks("the Secret was looked for", "whole")
}

// Objects are told when they have gone quiet, or after a bounded time.
func TestObjectsAreGathered(t *testing.T) {
	c := newClocked(t)
	c.begin()
	c.asks("start", "whole")
	start := c.time
	c.put(classKind, ingressClass("weir.io/ingress"))
	c.asks("at once", "10ms")
	c.pass(6 * time.Millisecond)
	c.put(ingressKind, ingress("t1", "web", "web"))
	c.asks("another object", "10ms")
	c.pass(9 * time.Millisecond)
	c.asks("not quiet yet", "1ms")
	c.pass(time.Millisecond)
	if change := c.asks("quiet", "whole"); !change.Seen.Equal(start) {
		t.Errorf("seen %s, want when the first object came, %s", change.Seen, start)
	}
	c.asks("told", "0s")

	for n := range 10 {
		c.put(ingressKind, ingress("t1", "web-"+string(rune('a'+n)), "web"))
		c.pass(4 * time.Millisecond)
	}
	c.put(ingressKind, ingress("t1", "last", "web"))
	c.asks("40 ms after the first", "10ms")
	c.pass(7 * time.Millisecond)
	c.put(ingressKind, ingress("t1", "later", "web"))
	c.asks("a stream of objects", "3ms")
	c.pass(3 * time.Millisecond)
	c.asks("50 ms after the first", "whole")
}

func TestSlicesPassObjects(t *testing.T) {
	c := newClocked(t)
	c.begin()
	c.put(classKind, ingressClass("weir.io/ingress"))
	c.put(ingressKind, ingress("t1", "web", "web"))
	c.put(sliceKind, slice("t1", "web-a", "web", "10.0.0.1"))
	c.asks("start", "whole")
	c.asks("told with all", "0s")

	c.put(ingressKind, ingress("t1", "more", "web"))
	c.pass(time.Millisecond)
	first := c.time
	c.put(sliceKind, slice("t1", "web-a", "web", "10.0.0.2"))
	c.pass(time.Millisecond)
	c.put(sliceKind, slice("t1", "web-a", "web", "10.0.0.3"))
	c.put(sliceKind, slice("t1", "web-b", "web", "10.0.0.4"))
	change := c.asks("slices", "slices")
	if s := change.Slices[at("t1", "web-a")]; len(change.Slices) != 2 || s.Endpoints[0].Addresses[0] != "10.0.0.3" || !change.Seen.Equal(first) {
		t.Errorf("change %+v, want the latest of two slices, seen when the first came", change)
	}
	c.asks("the object is still gathered", "8ms")
	c.pass(8 * time.Millisecond)
	if change := c.asks("object", "whole"); len(change.Objects.EndpointSlices) != 2 || len(change.Objects.Ingresses) != 2 {
		t.Errorf("objects %+v, want all", change.Objects)
	}
}

// While a watch is being restored, objects wait for what it may bring, but not for
// ever.
func TestObjectsWaitForAWatchThatIsRestored(t *testing.T) {
	c := newClocked(t)
	c.begin()
	c.asks("start", "whole")
	c.lost(c.feeds[serviceKind])
	c.put(ingressKind, ingress("t1", "web", "web"))
	c.pass(20 * time.Millisecond)
	c.asks("Services are not watched", "980ms")
	c.live(c.feeds[serviceKind])
	c.asks("watched again", "whole")

	c.lost(c.feeds[serviceKind])
	c.put(ingressKind, ingress("t1", "more", "web"))
	c.pass(stepTime)
	c.asks("a second later", "whole")
}

func TestEqualObjectsAreNoChange(t *testing.T) {
	c := newClocked(t)
	c.begin()
	c.put(classKind, ingressClass("weir.io/ingress"))
	c.put(ingressKind, ingress("t1", "web", "web"))
	c.put(sliceKind, slice("t1", "web-a", "web", "10.0.0.1"))
	before := c.asks("start", "whole").Objects
	c.put(classKind, ingressClass("weir.io/ingress"))
	c.put(ingressKind, ingress("t1", "web", "web"))
	c.put(sliceKind, slice("t1", "web-a", "web", "10.0.0.1"))
	c.asks("equal objects", "0s")
	c.put(ingressKind, ingress("t1", "more", "web"))
	c.pass(time.Second)
	after := c.asks("another", "whole").Objects
	if k := at("t1", "web"); before.Ingresses[k] != after.Ingresses[k] {
		t.Error("an equal object has a new pointer")
	}
	if k := at("t1", "web-a"); before.EndpointSlices[k] != after.EndpointSlices[k] {
		t.Error("an equal slice has a new pointer")
	}
	i := ingress("t1", "web", "web")
	i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: "more.test"})
	c.put(ingressKind, i)
	c.pass(time.Second)
	if o := c.asks("another rule", "whole").Objects; o.Ingresses[at("t1", "web")] == before.Ingresses[at("t1", "web")] {
		t.Error("a changed object has its old pointer")
	}
}
