package k8s

import (
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/l7/route"
)

func name(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// cut returns o without the Ingresses of the given names.
func cut(o *Objects, names ...types.NamespacedName) *Objects {
	out := o.Clone()
	for _, n := range names {
		delete(out.Ingresses, n)
	}
	return out
}

func TestEqualObjectsChangeNothing(t *testing.T) {
	o, _ := parse(t, class+service("t1", "a", "10.0.0.1")+ingressOf("t1", "i", "a.test", "/", "a"))
	tr := NewTranslator(Options{})
	first := tr.Apply(o)
	if first.Table == nil || first.Table.Version != 1 || first.EndpointsChanged != 1 || first.Ingresses != 1 || first.Hosts != 1 || first.Routes != 1 || first.Clusters != 1 {
		t.Fatalf("first Apply = %+v, want table 1 with one of each", first)
	}
	again := tr.Apply(o)
	if again.Table != nil || again.EndpointsChanged != 0 || again.Routes != 1 || again.ClusterList[0] != first.ClusterList[0] {
		t.Errorf("second Apply = %+v, want no change and the same cluster", again)
	}

	relabelled := o.Clone()
	i := o.Ingresses[name("t1", "i")].DeepCopy()
	i.Labels = map[string]string{"new": "label"}
	relabelled.Ingresses[name("t1", "i")] = i
	if r := tr.Apply(relabelled); r.Table != nil {
		t.Errorf("Apply after a new label = table %d, want none: it routes alike", r.Table.Version)
	}

	moved := o.Clone()
	i = i.DeepCopy()
	i.Spec.Rules[0].HTTP.Paths[0].Path = "/moved"
	moved.Ingresses[name("t1", "i")] = i
	r := tr.Apply(moved)
	if r.Table == nil || r.Table.Version != 2 {
		t.Fatalf("Apply after a new path = %+v, want table 2", r)
	}
	want(t, r.Table, "a.test/ -> 404", "a.test/moved -> t1/a:80")
}

func TestEmptyObjectsGiveATable(t *testing.T) {
	r := NewTranslator(Options{}).Apply(NewObjects())
	if r.Table == nil || r.Routes != 0 || len(r.Notices) != 0 {
		t.Errorf("Apply(nothing) = %+v, want an empty table", r)
	}
}

func TestClustersAndStatsSurviveATable(t *testing.T) {
	o, _ := parse(t, class+service("t1", "a", "10.0.0.1")+service("t1", "b", "10.0.0.2")+
		ingressOf("t1", "i", "a.test", "/", "a")+ingressOf("t1", "j", "b.test", "/", "b"))
	tr := NewTranslator(Options{Workers: 3})
	before := tr.Apply(o)
	after := tr.Apply(cut(o, name("t1", "j")))
	if after.Table == nil || after.Table.Version != 2 {
		t.Fatalf("Apply without j = %+v, want table 2", after)
	}
	if len(after.ClusterList) != 1 || after.ClusterList[0] != before.ClusterList[0] || len(after.RouteStats) != 1 || after.RouteStats[0] != before.RouteStats[0] {
		t.Errorf("clusters %v, stats %v, want those of a.test from before and no others", after.ClusterList, after.RouteStats)
	}
	if n := len(after.RouteStats[0].Shards); n != 3 {
		t.Errorf("%d shards, want 3", n)
	}
}

func TestEndpointsChangeWithoutATable(t *testing.T) {
	o, _ := parse(t, class+service("t1", "a", "10.0.0.1")+service("t1", "b", "10.0.0.2")+
		ingressOf("t1", "i", "a.test", "/", "a")+ingressOf("t1", "j", "b.test", "/", "b"))
	tr := NewTranslator(Options{})
	table := tr.Apply(o).Table
	a := table.Match("a.test", "/").Cluster
	b := table.Match("b.test", "/").Cluster.Endpoints()

	moved := o.Clone()
	s := o.EndpointSlices[name("t1", "a-1")].DeepCopy()
	s.Endpoints[0].Addresses = []string{"10.0.0.9"}
	moved.EndpointSlices[name("t1", "a-1")] = s
	r := tr.Apply(moved)
	if r.Table != nil || r.EndpointsChanged != 1 || !slices.Equal(addresses(a), []string{"10.0.0.9:8080"}) {
		t.Errorf("Apply = %+v with endpoints %v, want one change to 10.0.0.9 in the cluster in force", r, addresses(a))
	}
	if table.Match("b.test", "/").Cluster.Endpoints() != b {
		t.Error("the other cluster's set was replaced too")
	}

	delete(moved.EndpointSlices, name("t1", "a-1"))
	if r := tr.Apply(moved); r.EndpointsChanged != 1 || len(addresses(a)) != 0 {
		t.Errorf("Apply without the slice = %+v with endpoints %v, want none left", r, addresses(a))
	}
}

// TestSliceMoves is CB-63 step by step.
func TestSliceMoves(t *testing.T) {
	o, _ := parse(t, class+service("t1", "d", "10.0.0.9")+ingressOf("t1", "i", "d.test", "/", "d"))
	delete(o.EndpointSlices, name("t1", "d-1"))
	slice := func(name string, endpoints ...string) {
		s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(8080))}}}
		s.Name, s.Namespace, s.Labels = name, "t1", map[string]string{discoveryv1.LabelServiceName: "d"}
		for _, e := range endpoints {
			address, notReady := strings.CutPrefix(e, "-")
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.0.0." + address}, Conditions: discoveryv1.EndpointConditions{Ready: new(!notReady)}})
		}
		o.EndpointSlices[types.NamespacedName{Namespace: "t1", Name: name}] = s
	}
	tr := NewTranslator(Options{})
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"two slices", func() { slice("s1", "1", "2"); slice("s2", "2", "-3") }, "1 2 -3"},
		{"one copy goes", func() { slice("s1", "1") }, "1 2 -3"},
		{"one becomes ready", func() { slice("s2", "2", "3") }, "1 2 3"},
		{"one slice goes", func() { delete(o.EndpointSlices, name("t1", "s1")) }, "2 3"},
		{"the last goes", func() { delete(o.EndpointSlices, name("t1", "s2")) }, ""},
	}
	for _, step := range steps {
		step.do()
		r := tr.Apply(o)
		got := strings.Join(addresses(r.ClusterList[0]), " ")
		got = strings.NewReplacer("10.0.0.", "", ":8080", "").Replace(got)
		if got != step.want {
			t.Errorf("%s: endpoints %q, want %q", step.name, got, step.want)
		}
	}
}

// TestHostPassesOn is the end of CB-16: when the owner gives a host up, the next
// namespace gets it.
func TestHostPassesOn(t *testing.T) {
	o, _ := parse(t, class+service("t1", "a", "10.0.0.1")+service("t2", "evil", "10.0.0.2")+
		ingressOf("t1", "own", "api.test", "/", "a")+ingressOf("t1", "more", "api.test", "/v2", "a")+ingressOf("t2", "thief", "api.test", "/login", "evil"))
	tr := NewTranslator(Options{})
	r := tr.Apply(o)
	want(t, r.Table, "api.test/login -> t1/a:80")
	if got := reasons(r.Notices)["HostAlreadyClaimed"]; got != 1 {
		t.Errorf("%d notices HostAlreadyClaimed, want 1", got)
	}
	r = tr.Apply(cut(o, name("t1", "own")))
	want(t, r.Table, "api.test/login -> 404", "api.test/v2 -> t1/a:80")
	r = tr.Apply(cut(o, name("t1", "own"), name("t1", "more")))
	want(t, r.Table, "api.test/login -> t2/evil:80")
	if len(r.Notices) != 0 {
		t.Errorf("notices %v, want none", r.Notices)
	}
}

// TestOwnerStays: neither an older object that is edited to name the host nor
// the return of the first owner takes it away.
func TestOwnerStays(t *testing.T) {
	o, _ := parse(t, class+service("t1", "a", "10.0.0.1")+service("t2", "b", "10.0.0.2")+
		ingressOf("t1", "old", "api.test", "/", "a")+ingressOf("t2", "young", "api.test", "/", "b"))
	tr := NewTranslator(Options{})
	want(t, tr.Apply(cut(o, name("t1", "old"))).Table, "api.test/ -> t2/b:80")
	r := tr.Apply(o)
	if r.Table != nil {
		want(t, r.Table, "api.test/ -> t2/b:80")
	}
	if got := reasons(r.Notices)["HostAlreadyClaimed"]; got != 1 {
		t.Errorf("%d notices HostAlreadyClaimed, want 1 for the older object", got)
	}
	want(t, NewTranslator(Options{}).Apply(o).Table, "api.test/ -> t1/a:80")
}

func TestSharedHostsMerge(t *testing.T) {
	o, _ := parse(t, class+service("t1", "a", "10.0.0.1")+service("t2", "b", "10.0.0.2")+
		ingressOf("t1", "own", "api.test", "/", "a")+ingressOf("t2", "other", "api.test", "/login", "b"))
	r := NewTranslator(Options{SharedHosts: true}).Apply(o)
	want(t, r.Table, "api.test/ -> t1/a:80", "api.test/login -> t2/b:80")
	if len(r.Notices) != 0 {
		t.Errorf("notices %v, want none", r.Notices)
	}
}

// TestWinnerDeleted is CB-19: the twin on standby takes over with one table.
func TestWinnerDeleted(t *testing.T) {
	o, _ := parse(t, class+service("t1", "a", "10.0.0.1")+service("t1", "b", "10.0.0.2")+
		ingressOf("t1", "old", "rn.test", "/", "a")+ingressOf("t1", "new", "rn.test", "/", "b"))
	tr := NewTranslator(Options{})
	r := tr.Apply(o)
	want(t, r.Table, "rn.test/ -> t1/a:80")
	if got := reasons(r.Notices)["PathAlreadyServed"]; got != 1 {
		t.Errorf("%d notices PathAlreadyServed, want 1", got)
	}
	r = tr.Apply(cut(o, name("t1", "old")))
	want(t, r.Table, "rn.test/ -> t1/b:80")
	if len(r.Notices) != 0 {
		t.Errorf("notices %v, want none", r.Notices)
	}
}

func TestOptionsChooseObjects(t *testing.T) {
	other := strings.NewReplacer("name: weir", "name: other", `"true"`, `"false"`, "weir.io/ingress", "example.test/own").Replace(class)
	o, _ := parse(t, class+"---"+other+service("t1", "a", "10.0.0.1")+service("t2", "a", "10.0.0.2")+
		ingressOf("t1", "i", "one.test", "/", "a")+ingressOf("t2", "i", "two.test", "/", "a")+
		strings.Replace(ingressOf("t1", "o", "other.test", "/", "a"), "spec: {", "spec: {ingressClassName: other, ", 1))
	tests := []struct {
		name string
		opt  Options
		want []string
	}{
		{"zero", Options{}, []string{"one.test", "two.test"}},
		{"namespace", Options{WatchNamespaces: []string{"t2"}}, []string{"two.test"}},
		{"controller", Options{ControllerClasses: []string{"example.test/own"}}, []string{"other.test"}},
		{"class", Options{ControllerClasses: []string{"example.test/own", "weir.io/ingress"}, IngressClass: "other"}, []string{"other.test"}},
	}
	for _, test := range tests {
		var got []string
		for _, h := range NewTranslator(test.opt).Apply(o).Table.Hosts() {
			got = append(got, h.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: hosts %q, want %q", test.name, got, test.want)
		}
	}
	delete(o.IngressClasses, "weir")
	if r := NewTranslator(Options{}).Apply(o); r.Routes != 0 || reasons(r.Notices)["NoClass"] != 2 {
		t.Errorf("without default class: %d routes, notices %v, want 0 and 2 NoClass", r.Routes, r.Notices)
	}
	if r := NewTranslator(Options{WatchWithoutClass: true}).Apply(o); r.Routes != 2 {
		t.Errorf("WatchWithoutClass: %d routes, want 2", r.Routes)
	}
}

func TestLoopbackOnlyIfAllowed(t *testing.T) {
	o, _ := parse(t, class+service("t1", "a", "127.0.0.1")+service("t1", "b", "169.254.169.254")+
		ingressOf("t1", "i", "a.test", "/", "a")+ingressOf("t1", "j", "b.test", "/", "b"))
	want(t, NewTranslator(Options{}).Apply(o).Table, "a.test/ -> 503 t1/a:80", "b.test/ -> 503 t1/b:80")
	want(t, NewTranslator(Options{AllowLoopback: true}).Apply(o).Table, "a.test/ -> t1/a:80", "b.test/ -> 503 t1/b:80")
}

func TestConfigMapIsLive(t *testing.T) {
	settings := "\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: c, namespace: sys}\ndata: {proxy-body-size: 8m}\n"
	o, _ := parse(t, class+settings+service("t1", "a", "10.0.0.1")+ingressOf("t1", "i", "a.test", "/", "a"))
	tr := NewTranslator(Options{ConfigMap: "sys/c"})
	size := func(r Result) int64 { return r.Table.Match("a.test", "/").Policy.BodyBytesMax }
	if got := size(tr.Apply(o)); got != 8<<20 {
		t.Errorf("body limit %d, want 8 MiB", got)
	}
	changed := o.Clone()
	m := o.ConfigMaps[name("sys", "c")].DeepCopy()
	m.Data["proxy-body-size"] = "2m"
	changed.ConfigMaps[name("sys", "c")] = m
	if got := size(tr.Apply(changed)); got != 2<<20 {
		t.Errorf("body limit %d after the change, want 2 MiB", got)
	}
	delete(changed.ConfigMaps, name("sys", "c"))
	r := tr.Apply(changed)
	if got := size(r); got != route.DefaultPolicy().BodyBytesMax || reasons(r.Notices)["NoConfigMap"] != 1 {
		t.Errorf("body limit %d, notices %v after its deletion, want the default and NoConfigMap", got, r.Notices)
	}
}
