package watch

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/k8s"
)

// each runs a test with a server that streams what there is and with one that can
// only list.
func each(t *testing.T, test func(t *testing.T, a *api)) {
	for _, streams := range []bool{true, false} {
		t.Run(fmt.Sprintf("streams=%t", streams), func(t *testing.T) {
			a := newAPI(t)
			a.streams, a.page = streams, 2
			test(t, a)
		})
	}
}

func TestTheFirstChangeHoldsEverything(t *testing.T) {
	each(t, func(t *testing.T, a *api) {
		site(a)
		for n := range 5 {
			a.put("endpointslices", slice("t1", fmt.Sprint("web-", n), "web", fmt.Sprint("10.0.1.", n)))
		}
		held := make(chan struct{})
		a.answer = func(w http.ResponseWriter, c *call) bool {
			if c.resource == "endpointslices" {
				<-held
			}
			return false
		}
		f := follow(t, a, nil)
		eventually(t, "the other kinds", func() bool {
			return f.kind("Ingress").Synced && f.kind("Service").Synced && f.kind("IngressClass").Synced
		})
		f.silent("before all slices are read")
		if f.kind("EndpointSlice").Synced {
			t.Error("slices count as read")
		}
		close(held)
		c := f.change(0)
		if c.Objects == nil || len(c.Objects.Ingresses) != 1 || len(c.Objects.Services) != 1 || len(c.Objects.EndpointSlices) != 6 || len(c.Notices) != 0 {
			t.Fatalf("first change %+v, want all objects and no notice", c)
		}
		if k := f.kind("EndpointSlice"); k.Objects != 6 || !k.Synced || k.Syncs != 1 || k.InStep.IsZero() || k.Errors > 0 {
			t.Errorf("statistics %+v, want 6 objects of one sync", k)
		}
	})
}

func TestSlicesAreToldAtOnceAndAlone(t *testing.T) {
	each(t, func(t *testing.T, a *api) {
		site(a)
		f := follow(t, a, nil)
		f.change(0)
		before := time.Now()
		a.put("endpointslices", slice("t1", "web-a", "web", "10.0.0.2", "10.0.0.3"))
		c := f.change(1)
		want := map[string][]string{"t1/web-a": {"10.0.0.2", "10.0.0.3"}}
		if c.Objects != nil || !reflect.DeepEqual(addresses(c.Slices), want) || c.Seen.Before(before) || c.Seen.After(time.Now()) {
			t.Fatalf("change %+v of %v, want only %v, seen just now", c, addresses(c.Slices), want)
		}
		if s := c.Slices[at("t1", "web-a")]; len(s.Labels) != 1 || s.Endpoints[0].TargetRef != nil || *s.Endpoints[0].NodeName != "node-1" || !*s.Endpoints[0].Conditions.Ready {
			t.Errorf("slice %+v, want it trimmed", s)
		}
		a.remove("endpointslices", at("t1", "web-a"))
		c = f.change(2)
		if s, ok := c.Slices[at("t1", "web-a")]; c.Objects != nil || s != nil || !ok {
			t.Fatalf("change %+v, want that the slice is gone", c)
		}
		f.silent("after the slices")
	})
}

func TestSlicesOfServicesThatNobodyNamesAreKeptPacked(t *testing.T) {
	a := newAPI(t)
	site(a)
	a.put("services", service("t1", "idle"))
	a.put("endpointslices", slice("t1", "idle-a", "idle", "10.0.9.1"))
	f := follow(t, a, nil)
	if o := f.change(0).Objects; len(o.EndpointSlices) != 1 || len(o.Services) != 1 {
		t.Errorf("%d slices and %d Services, want those of web alone", len(o.EndpointSlices), len(o.Services))
	}
	a.put("endpointslices", slice("t1", "idle-a", "idle", "10.0.9.2"))
	a.put("services", service("t1", "idle2"))
	f.silent("a slice and a Service that nobody names")
	packed := func() bool {
		f.store.mu.Lock()
		defer f.store.mu.Unlock()
		return f.store.tables[sliceKind][at("t1", "idle-a")].object == nil
	}
	if !packed() {
		t.Error("the slice is kept decoded")
	}
	a.put("ingresses", ingress("t1", "idle", "idle"))
	o := f.change(1).Objects
	if o == nil || o.Services[at("t1", "idle")] == nil || !reflect.DeepEqual(addresses(o.EndpointSlices)["t1/idle-a"], []string{"10.0.9.2"}) {
		t.Fatalf("objects %+v, want Service and slice with the Ingress that names them", o)
	}
	a.put("endpointslices", slice("t1", "idle-a", "idle", "10.0.9.3"))
	if c := f.change(2); !reflect.DeepEqual(addresses(c.Slices), map[string][]string{"t1/idle-a": {"10.0.9.3"}}) {
		t.Errorf("change %v, want the slice", addresses(c.Slices))
	}
	a.remove("ingresses", at("t1", "idle"))
	if o := f.change(3).Objects; len(o.Services) != 1 || len(o.EndpointSlices) != 1 || !packed() {
		t.Errorf("%d Services, %d slices, packed again %t; want those of web alone", len(o.Services), len(o.EndpointSlices), packed())
	}
}

func TestWhatIsWrittenTogetherIsToldTogether(t *testing.T) {
	a := newAPI(t)
	site(a)
	f := follow(t, a, nil)
	f.change(0)
	for n := range 5 {
		a.put("ingresses", ingress("t1", fmt.Sprint("more-", n), "more"))
	}
	a.put("endpointslices", slice("t1", "more-a", "more", "10.0.0.5"))
	a.put("services", service("t1", "more"))
	o := f.objects("six Ingresses", func(o *k8s.Objects) bool { return len(o.Ingresses) == 6 })
	if o.Services[at("t1", "more")] == nil || o.EndpointSlices[at("t1", "more-a")] == nil {
		t.Errorf("the Ingresses were told without their Service or slice: %+v", o)
	}
}

func TestAStatusAloneIsNoChange(t *testing.T) {
	each(t, func(t *testing.T, a *api) {
		site(a)
		f := follow(t, a, nil)
		f.change(0)
		i := ingress("t1", "web", "web")
		i.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
		i.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
		i.ManagedFields = nil
		a.put("ingresses", i)
		eventually(t, "the call for the status", func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return slices.Equal(f.statuses, []key{at("t1", "web")})
		})
		f.silent("a status")
		got, ref, ok := f.Ingress(at("t1", "web"))
		if !ok || len(got.Ingress) != 1 || got.Ingress[0].IP != "192.0.2.1" || ref.UID != "uid-of-ingress" || ref.ResourceVersion != i.ResourceVersion ||
			ref.Kind != "Ingress" || ref.APIVersion != "networking.k8s.io/v1" || ref.Namespace != "t1" || ref.Name != "web" {
			t.Errorf("Ingress = %+v, %+v, %t; want the new status and version", got, ref, ok)
		}
		if _, _, ok := f.Ingress(at("t1", "none")); ok {
			t.Error("an Ingress that does not exist was found")
		}
		if ref, ok := f.Reference("Service", "t1", "web"); !ok || ref.Kind != "Service" || ref.APIVersion != "v1" {
			t.Errorf("Reference = %+v, %t, want the Service", ref, ok)
		}
		if _, ok := f.Reference("Pod", "t1", "web"); ok {
			t.Error("a reference to a kind that is not watched was found")
		}
		// The same in a whole list, after a loss of the thread.
		i.Status.LoadBalancer.Ingress[0].IP = "192.0.2.2"
		a.forget()
		a.put("ingresses", i)
		a.forget()
		a.endWatches()
		eventually(t, "the call for the second status", func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return len(f.statuses) >= 2
		})
		f.silent("a second status")
	})
}

func TestOnlySecretsOfServedIngressesAreRead(t *testing.T) {
	each(t, func(t *testing.T, a *api) {
		site(a)
		a.put("secrets", secret("t1", "cert"))
		a.put("secrets", secret("t1", "other"))
		a.put("secrets", secret("t2", "cert"))
		a.put("ingresses", ingress("t1", "tls", "web", "cert", "cert", "missing", "a=b,metadata.name=other", ""))
		foreign := ingress("t2", "foreign", "web", "cert")
		foreign.Spec.IngressClassName = new("another")
		a.put("ingresses", foreign)
		f := follow(t, a, nil)
		o := f.change(0).Objects
		s := o.Secrets[at("t1", "cert")]
		if len(o.Secrets) != 1 || s == nil || len(s.Data) != 2 || string(s.Data["tls.key"]) != "k" {
			t.Fatalf("Secrets %+v, want t1/cert with key and certificate alone", o.Secrets)
		}
		for _, r := range a.asked() {
			verb, rest, _ := cutVerb(r)
			if rest[:min(7, len(rest))] == "secrets" && rest != "secrets t1 cert" && rest != "secrets t1 missing" {
				t.Errorf("%s %s was asked, want only t1/cert and t1/missing, each by its name", verb, rest)
			}
		}
		a.put("secrets", secret("t1", "missing"))
		f.objects("the Secret that was missing", func(o *k8s.Objects) bool { return o.Secrets[at("t1", "missing")] != nil })
		a.remove("secrets", at("t1", "missing"))
		f.objects("its deletion", func(o *k8s.Objects) bool { return o.Secrets[at("t1", "missing")] == nil })
		a.put("ingresses", ingress("t1", "tls", "web", "other"))
		o = f.objects("the other Secret", func(o *k8s.Objects) bool { return o.Secrets[at("t1", "other")] != nil })
		if o.Ingresses[at("t1", "tls")].Spec.TLS[0].SecretName != "other" {
			t.Error("the Secret was told before its Ingress")
		}
		f.objects("only the other Secret", func(o *k8s.Objects) bool { return len(o.Secrets) == 1 })
		a.remove("ingresses", at("t1", "tls"))
		f.objects("no Secret", func(o *k8s.Objects) bool { return len(o.Secrets) == 0 })
		if k := f.kind("Secret"); k.Kind != "" {
			t.Errorf("Secrets are still watched: %+v", k)
		}
		a.put("ingressclasses", ingressClass("example.test/another"))
		f.objects("the class", func(o *k8s.Objects) bool { return o.IngressClasses["weir"].Spec.Controller != "weir.io/ingress" })
		a.put("ingresses", ingress("t1", "tls", "web", "cert"))
		f.objects("an Ingress that is not served", func(o *k8s.Objects) bool { return o.Ingresses[at("t1", "tls")] != nil })
		if o := f.objects("it", func(*k8s.Objects) bool { return true }); len(o.Secrets) != 0 || len(o.Services) != 0 {
			t.Errorf("%d Secrets and %d Services of Ingresses that are not served", len(o.Secrets), len(o.Services))
		}
		a.put("ingressclasses", ingressClass("weir.io/ingress"))
		f.objects("the Secret of an Ingress that is served again", func(o *k8s.Objects) bool { return o.Secrets[at("t1", "cert")] != nil })
	})
}

// An Ingress is told with the Secret that it names now, not before.
func TestAnIngressWaitsForItsSecret(t *testing.T) {
	a := newAPI(t)
	site(a)
	f := follow(t, a, nil)
	f.change(0)
	held := make(chan struct{})
	a.set(func() {
		a.answer = func(w http.ResponseWriter, c *call) bool {
			if c.resource == "secrets" {
				<-held
			}
			return false
		}
	})
	a.put("secrets", secret("t1", "cert"))
	a.put("ingresses", ingress("t1", "tls", "web", "cert"))
	f.silent("an Ingress whose Secret is being read")
	close(held)
	if o := f.change(1).Objects; o == nil || o.Secrets[at("t1", "cert")] == nil || o.Ingresses[at("t1", "tls")] == nil {
		t.Errorf("change %+v, want Ingress and Secret", o)
	}
}

// cutVerb splits "list secrets t1 cert".
func cutVerb(r string) (verb, rest string, ok bool) {
	for n := range r {
		if r[n] == ' ' {
			return r[:n], r[n+1:], true
		}
	}
	return r, "", false
}

func TestNamespacesAreWatchedOneByOne(t *testing.T) {
	a := newAPI(t)
	site(a)
	a.put("ingresses", ingress("t2", "web", "web"))
	a.put("ingresses", ingress("t3", "web", "web"))
	f := follow(t, a, func(c *Config) {
		c.Objects.WatchNamespaces = []string{"t2", "t1", "t2"}
		c.Objects.ConfigMap = "sys/settings"
		c.NodeName = "node-1"
	})
	if o := f.change(0).Objects; len(o.Ingresses) != 2 || o.Ingresses[at("t3", "web")] != nil {
		t.Errorf("Ingresses %v, want those of t1 and t2", o.Ingresses)
	}
	want := []string{
		"stream configmaps sys settings", "stream endpointslices t1", "stream endpointslices t2", "stream ingressclasses",
		"stream ingresses t1", "stream ingresses t2", "stream nodes node-1", "stream services t1", "stream services t2",
	}
	if got := a.asked(); !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
	a.remove("ingresses", at("t2", "web"))
	if o := f.change(1).Objects; len(o.Ingresses) != 1 {
		t.Errorf("Ingresses %v, want that of t1", o.Ingresses)
	}
	// One namespace is read anew: what others have stays.
	a.forget()
	a.endWatches()
	eventually(t, "all Ingresses read again", func() bool { return f.kind("Ingress").Syncs == 4 })
	f.silent("equal objects")
}

func TestConfigMapAndNodeAreToldTrimmed(t *testing.T) {
	a := newAPI(t)
	site(a)
	m := &corev1.ConfigMap{Data: map[string]string{"a": "b"}, BinaryData: map[string][]byte{"x": {1}}}
	m.Namespace, m.Name = "sys", "settings"
	a.put("configmaps", m)
	n := &corev1.Node{}
	n.Name, n.Labels = "node-1", map[string]string{corev1.LabelTopologyZone: "z1", "more": "x"}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.7"}}
	n.Status.Images = []corev1.ContainerImage{{SizeBytes: 1}}
	a.put("nodes", n)
	f := follow(t, a, func(c *Config) { c.Objects.ConfigMap, c.NodeName = "sys/settings", "node-1" })
	o := f.change(0).Objects
	if got := o.ConfigMaps[at("sys", "settings")]; got == nil || got.Data["a"] != "b" || got.BinaryData != nil {
		t.Errorf("ConfigMap %+v", got)
	}
	if o.Node == nil || o.Node.Labels[corev1.LabelTopologyZone] != "z1" || len(o.Node.Labels) != 1 || len(o.Node.Status.Addresses) != 1 || o.Node.Status.Images != nil {
		t.Errorf("Node %+v, want zone and address alone", o.Node)
	}
	n.Status.Images = nil
	n.Labels["more"] = "y"
	a.put("nodes", n)
	f.silent("a change of the Node that does not matter")
	n.Labels[corev1.LabelTopologyZone] = "z2"
	a.put("nodes", n)
	if o := f.change(1).Objects; o.Node.Labels[corev1.LabelTopologyZone] != "z2" {
		t.Errorf("Node %+v, want zone z2", o.Node)
	}
}

func TestSelectorsHideObjects(t *testing.T) {
	a := newAPI(t)
	site(a)
	namespace := func(name, team string) {
		n := &corev1.Namespace{}
		n.Name, n.Labels = name, map[string]string{"team": team}
		a.put("namespaces", n)
	}
	namespace("t1", "a")
	namespace("t2", "b")
	labelled := func(namespace, name, tier string) {
		i := ingress(namespace, name, "web", "cert")
		i.Labels = map[string]string{"tier": tier}
		a.put("ingresses", i)
	}
	labelled("t1", "front", "front")
	labelled("t1", "back", "back")
	labelled("t2", "front", "front")
	f := follow(t, a, func(c *Config) { c.NamespaceSelector, c.IngressSelector = "team=a", "tier in (front)" })
	if o := f.change(0).Objects; len(o.Ingresses) != 1 || o.Ingresses[at("t1", "front")] == nil {
		t.Errorf("Ingresses %v, want t1/front alone", o.Ingresses)
	}
	if slices.Contains(a.asked(), "stream secrets t2 cert") {
		t.Error("a Secret of a namespace that is not selected was read")
	}
	if _, _, ok := f.Ingress(at("t2", "front")); ok {
		t.Error("an Ingress of a namespace that is not selected is visible")
	}
	if _, ok := f.Reference("Ingress", "t2", "front"); ok {
		t.Error("a reference into a namespace that is not selected is there")
	}
	if got := f.Ingresses(); !slices.Equal(got, []key{at("t1", "front")}) {
		t.Errorf("Ingresses() = %v, want t1/front alone", got)
	}
	namespace("t2", "a")
	f.objects("t2, whose label changed", func(o *k8s.Objects) bool { return len(o.Ingresses) == 2 })
	eventually(t, "its Secret", func() bool { return slices.Contains(a.asked(), "stream secrets t2 cert") })
	a.remove("namespaces", at("", "t1"))
	f.objects("t2 alone", func(o *k8s.Objects) bool { return len(o.Ingresses) == 1 && o.Ingresses[at("t2", "front")] != nil })
}

func TestSelectorsAreChecked(t *testing.T) {
	for _, c := range []Config{{IngressSelector: "a=b=c"}, {NamespaceSelector: "in (x)"}} {
		a := newAPI(t)
		c.API = follow(t, a, nil).config.API
		if _, err := New(c); err == nil {
			t.Errorf("New(%q, %q) took the selector", c.IngressSelector, c.NamespaceSelector)
		}
	}
}

// TestNothingIsServedBeforeTheConfigMapIsKnown: it may protect every route. Only that
// reading it is forbidden is an answer.
func TestNothingIsServedBeforeTheConfigMapIsKnown(t *testing.T) {
	for code, reason := range map[int]string{500: "InternalError", 503: "ServiceUnavailable", 429: "TooManyRequests", 401: "Unauthorized", 403: "Forbidden"} {
		a := newAPI(t)
		site(a)
		var failing atomic.Bool
		failing.Store(true)
		a.put("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "weir", Name: "c"}, Data: map[string]string{"a": "1"}})
		a.answer = func(w http.ResponseWriter, r *call) bool {
			if r.resource != "configmaps" || !failing.Load() {
				return false
			}
			status(w, code, reason, "not now")
			return true
		}
		f := follow(t, a, func(c *Config) { c.Objects.ConfigMap = "weir/c" })
		if code == 403 {
			eventually(t, "a first set without the ConfigMap", func() bool { return f.told() > 0 })
			continue
		}
		eventually(t, "a failure", func() bool {
			return slices.ContainsFunc(f.Stats().Kinds, func(k KindStats) bool { return k.Kind == "ConfigMap" && k.Errors > 0 })
		})
		time.Sleep(100 * time.Millisecond)
		if f.told() != 0 {
			t.Errorf("%d for the ConfigMap: objects are told without it", code)
		}
		failing.Store(false)
		eventually(t, "all objects", func() bool { return f.told() > 0 })
		if n := len(f.change(0).Objects.ConfigMaps); n != 1 {
			t.Errorf("%d, then well: %d ConfigMaps, want 1", code, n)
		}
	}
}

// TestManyNamespacesAreTakenOverAtOnce: the cost of their list grows with what there
// is, and not with its square.
func TestManyNamespacesAreTakenOverAtOnce(t *testing.T) {
	took := func(n int) time.Duration {
		s := newStore(k8s.Options{}, true, nil)
		packed := func(o metav1.Object) *entry {
			e, err := pack(o, "1")
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		ingresses, namespaces := make(map[key]*entry), make(map[key]*entry)
		for i := range n {
			name := fmt.Sprintf("n%d", i)
			ingresses[key{Namespace: name, Name: "i"}] = packed(ingress(name, "i", "s"))
			namespaces[key{Name: name}] = packed(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		s.replace(&feed{kind: ingressKind}, ingresses)
		start := time.Now()
		s.replace(&feed{kind: namespaceKind}, namespaces)
		return time.Since(start)
	}
	took(100) // warm
	few, many := took(500), took(5000)
	if many > 40*few+200*time.Millisecond {
		t.Errorf("5,000 namespaces took %v, 500 took %v", many, few)
	}
}
