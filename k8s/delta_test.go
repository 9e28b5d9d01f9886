package k8s

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// world is a set of objects that changes at random. Few names make many collisions.
type world struct {
	*Objects
	*rand.Rand
	age time.Time
}

func newWorld(seed uint64) *world {
	w := &world{NewObjects(), rand.New(rand.NewPCG(seed, 1)), time.Unix(1e9, 0)}
	for range 12 {
		w.changeService()
		w.changeSlice()
		w.changeIngress()
	}
	w.changeClass("weir")
	return w
}

func pick[T any](w *world, list ...T) T { return list[w.IntN(len(list))] }

func (w *world) name(prefix string, n int) types.NamespacedName {
	return name(pick(w, "t1", "t2", "t3"), fmt.Sprint(prefix, w.IntN(n)))
}

func (w *world) changeClass(name string) {
	if w.IntN(3) == 0 && w.IngressClasses[name] != nil {
		delete(w.IngressClasses, name)
		return
	}
	c := &networkingv1.IngressClass{}
	c.Name, c.Spec.Controller = name, pick(w, "weir.io/ingress", "weir.io/ingress", "example.test/other")
	c.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: pick(w, "true", "true", "false")}
	w.IngressClasses[name] = c
}

func (w *world) changeConfigMap() {
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = "sys", "c"
	m.Data = map[string]string{"proxy-body-size": pick(w, "1m", "2m", "nonsense")}
	if w.IntN(3) == 0 {
		m.Data["global-auth-url"] = "http://auth.test"
	}
	w.ConfigMaps[name("sys", "c")] = m
	if w.IntN(4) == 0 {
		delete(w.ConfigMaps, name("sys", "c"))
	}
}

func (w *world) changeService() {
	key := w.name("s", 3)
	if w.IntN(4) == 0 {
		delete(w.Services, key)
		return
	}
	s := &corev1.Service{}
	s.Namespace, s.Name = key.Namespace, key.Name
	s.Spec.Type = pick(w, corev1.ServiceTypeClusterIP, corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName)
	s.Spec.Ports = []corev1.ServicePort{{Name: pick(w, "http", "web"), Port: 80}}
	if w.IntN(2) == 0 {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "alt", Port: pick[int32](w, 80, 81)})
	}
	w.Services[key] = s
}

func (w *world) changeSlice() types.NamespacedName {
	key := w.name("s", 3)
	service := key.Name
	key.Name += fmt.Sprint("-", w.IntN(3))
	if w.IntN(4) == 0 {
		delete(w.EndpointSlices, key)
		return key
	}
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	s.Namespace, s.Name = key.Namespace, key.Name
	s.Labels = map[string]string{discoveryv1.LabelServiceName: pick(w, service, service, service, "s1")}
	for _, port := range []string{"http", "web", "alt"} {
		if w.IntN(3) > 0 {
			s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: new(port), Port: new(pick[int32](w, 8080, 10250))})
		}
	}
	for range w.IntN(4) {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{pick(w, "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "127.0.0.1", "192.168.0.1")},
			Conditions: discoveryv1.EndpointConditions{Ready: new(w.IntN(2) == 0), Serving: new(w.IntN(2) == 0), Terminating: new(w.IntN(3) == 0)},
		})
	}
	w.EndpointSlices[key] = s
	return key
}

// changeAPI changes where the API server is.
func (w *world) changeAPI() types.NamespacedName {
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	s.Namespace, s.Name, s.Labels = "default", "kubernetes", map[string]string{discoveryv1.LabelServiceName: "kubernetes"}
	s.Ports = []discoveryv1.EndpointPort{{Port: new(int32(8080))}}
	s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{pick(w, "10.0.0.1", "10.0.0.2", "10.9.9.9")}}}
	w.EndpointSlices[apiService] = s
	return apiService
}

func (w *world) backend() networkingv1.IngressBackend {
	b := &networkingv1.IngressServiceBackend{Name: fmt.Sprint("s", w.IntN(4))}
	b.Port = pick(w, networkingv1.ServiceBackendPort{Number: 80}, networkingv1.ServiceBackendPort{Number: 81},
		networkingv1.ServiceBackendPort{Name: "http"}, networkingv1.ServiceBackendPort{Name: "alt"})
	return networkingv1.IngressBackend{Service: b}
}

func (w *world) changeIngress() {
	key := w.name("i", 5)
	old := w.Ingresses[key]
	if w.IntN(4) == 0 {
		delete(w.Ingresses, key)
		return
	}
	i := &networkingv1.Ingress{}
	i.Namespace, i.Name = key.Namespace, key.Name
	w.age = w.age.Add(time.Duration(w.IntN(2)) * time.Second)
	i.CreationTimestamp = metav1.NewTime(w.age)
	if old != nil {
		i.CreationTimestamp = old.CreationTimestamp
	}
	i.Annotations = map[string]string{}
	for _, a := range [][]string{
		{"proxy-body-size", "1m", "3m", "x"}, {"canary", "true"}, {"auth-url", "http://x"}, {"use-regex", "true"}, {"enable-global-auth", "false"}, {"nosuch", ""},
	} {
		if w.IntN(6) == 0 {
			i.Annotations[nginxPrefix+a[0]] = pick(w, a[1:]...)
		}
	}
	if w.IntN(5) == 0 {
		i.Spec.IngressClassName = new(pick(w, "weir", "other", "nosuch"))
	}
	if w.IntN(4) == 0 {
		i.Spec.DefaultBackend = new(w.backend())
	}
	for range w.IntN(4) {
		r := networkingv1.IngressRule{Host: pick(w, "a.x.test", "b.x.test", "*.x.test", "c.test", "", "BAD")}
		r.HTTP = &networkingv1.HTTPIngressRuleValue{}
		for range w.IntN(3) {
			kind := pick(w, networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific)
			r.HTTP.Paths = append(r.HTTP.Paths, networkingv1.HTTPIngressPath{Path: pick(w, "/", "/a", "/a/", "/a(/|$)"), PathType: &kind, Backend: w.backend()})
		}
		i.Spec.Rules = append(i.Spec.Rules, r)
	}
	w.Ingresses[key] = i
}

// edits returns what differs from before, and some that does not.
func (w *world) edits(before *Objects) *Edits {
	e := NewEdits()
	differ(e.Ingresses, before.Ingresses, w.Ingresses)
	differ(e.Services, before.Services, w.Services)
	differ(e.EndpointSlices, before.EndpointSlices, w.EndpointSlices)
	e.Services[w.name("s", 3)] = true
	e.Ingresses[w.name("i", 5)] = true
	return e
}

// differ puts into edits the names of what differs.
func differ[T comparable](edits map[types.NamespacedName]bool, before, now map[types.NamespacedName]T) {
	for key, o := range now {
		if before[key] != o {
			edits[key] = true
		}
	}
	for key := range before {
		if _, ok := now[key]; !ok {
			edits[key] = true
		}
	}
}

// dump tells all that a translation holds. What a Service with a renamed port had
// before stays in use, so it has a history and is left out.
func dump(t *Translator, r Result) []string {
	var out []string
	renamed := make(map[string]bool)
	for _, n := range r.Notices {
		if n.Reason == "NoSlicePort" {
			renamed[n.Namespace+"/"+n.Name] = true
			n.Message, _, _ = strings.Cut(n.Message, ": ")
		}
		out = append(out, fmt.Sprintf("notice %+v", n))
	}
	for _, h := range t.table.Hosts() {
		for _, x := range append(slices.Clone(h.Routes), h.Default) {
			if x != nil {
				out = append(out, fmt.Sprintf("route %s %q %s %q -> %s by %s%s counted in %s %s", h.Name, x.Host, x.Kind, x.Path, x.Cluster.Name, x.Source,
					differs(*x.Policy), x.Stats.Host, x.Stats.Source))
			}
		}
		out = append(out, "host "+h.Name)
	}
	for _, c := range r.ClusterList {
		if service, _, _ := strings.Cut(c.Name, ":"); !renamed[service] {
			out = append(out, fmt.Sprint("cluster ", c.Name, addresses(c), t.table.Uses(c)))
		}
	}
	for _, s := range r.RouteStats {
		out = append(out, "stats "+s.Host+" "+s.Source)
	}
	return append(out, fmt.Sprintf("%d Ingresses %d hosts %d routes %d clusters, admitted %v", r.Ingresses, r.Hosts, r.Routes, r.Clusters, r.Admitted))
}

// TestChangesAddUpToATranslationFromScratch changes objects at random and compares
// what a translator that followed the changes holds with what a new one makes of
// the same objects. The new one is told who owned which host, since that depends on
// what was before.
func TestChangesAddUpToATranslationFromScratch(t *testing.T) {
	for seed := range uint64(30) {
		for _, o := range []Options{{ConfigMap: "sys/c"}, {SharedHosts: true}, {WatchNamespaces: []string{"t1", "t2"}, WatchWithoutClass: true}} {
			follow(t, seed, o)
			if t.Failed() {
				return
			}
		}
	}
}

func follow(t *testing.T, seed uint64, options Options) {
	w := newWorld(seed)
	tr := NewTranslator(options)
	tr.Apply(w.Clone())
	told := w.Clone()
	for step := range 60 {
		owners := make(map[string]string)
		for host, s := range tr.sites {
			if s.owned {
				owners[host] = s.owner
			}
		}
		before := tr.table
		var r Result
		if w.IntN(2) == 0 {
			changed := make(map[types.NamespacedName]*discoveryv1.EndpointSlice)
			for range 1 + w.IntN(3) {
				key := w.changeSlice()
				if w.IntN(10) == 0 {
					key = w.changeAPI()
				}
				changed[key] = w.EndpointSlices[key]
			}
			for key := range changed {
				changed[key] = w.EndpointSlices[key]
			}
			// Two draws may have met one slice; one that changeAPI replaced has changed too.
			for key, s := range w.EndpointSlices {
				if tr.slices.all[key] != s {
					changed[key] = s
				}
			}
			for key := range tr.slices.all {
				if w.EndpointSlices[key] == nil {
					changed[key] = nil
				}
			}
			r = tr.ApplySlices(changed)
		} else {
			for range 1 + w.IntN(2) {
				pick(w, w.changeIngress, w.changeIngress, w.changeIngress, w.changeService, func() { w.changeSlice() }, w.changeConfigMap,
					func() { w.changeClass(pick(w, "weir", "other")) },
					func() {
						n := &corev1.Node{}
						n.Status.Addresses = []corev1.NodeAddress{{Address: pick(w, "10.0.0.3", "host.test")}}
						w.Node = n
					})()
			}
			now := w.Clone()
			if w.IntN(2) == 0 {
				now.Edits = w.edits(told)
			}
			r = tr.Apply(now)
		}
		told = w.Clone()
		scratch := NewTranslator(options)
		for host, owner := range owners {
			s := scratch.site(host)
			s.owned, s.owner = true, owner
		}
		want := dump(scratch, scratch.Apply(w.Clone()))
		got := dump(tr, r)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("seed %d, step %d, options %+v: after changes\n%s\nbut from scratch\n%s", seed, step, options, only(got, want), only(want, got))
			return
		}
		if (r.Table != nil) != (tr.table != before) {
			t.Errorf("seed %d, step %d: table %v told, but version %d after %d", seed, step, r.Table, tr.table.Version, before.Version)
		}
		if again := tr.Apply(w.Clone()); again.Table != nil || again.EndpointsChanged != 0 || again.NoticesChanged {
			t.Errorf("seed %d, step %d: the same objects again = %+v, want no change", seed, step, again)
		}
		leftovers(t, tr)
		if t.Failed() {
			return
		}
	}
}

// only returns what list has and other has not.
func only(list, other []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) }), "\n")
}

// leftovers fails if an index of tr holds what nothing in force needs.
func leftovers(t *testing.T, tr *Translator) {
	t.Helper()
	services, clusters, policies := map[types.NamespacedName]bool{}, map[*cluster]bool{}, map[string]bool{}
	for host, s := range tr.sites {
		if len(s.claims) == 0 && !s.built.inForce {
			t.Errorf("host %q is kept, but nobody claims it", host)
		}
		for _, key := range s.built.services {
			services[key] = true
		}
		for _, c := range s.built.clusters {
			clusters[c] = true
		}
	}
	for _, m := range tr.ingresses {
		if m.ingress != nil {
			policies[m.settings] = true
		}
	}
	indexed := 0
	for _, list := range tr.clusters.byService {
		indexed += len(list)
	}
	if tr.clusters.byName[refusedCluster] != nil {
		indexed++
	}
	if len(services) != len(tr.leading) || len(clusters) != len(tr.clusters.byName) || indexed != len(clusters) || len(policies) != len(tr.policies) {
		t.Errorf("%d Services, %d clusters, %d policies in use; indexed %d, %d and %d, %d", len(services), len(clusters), len(policies),
			len(tr.leading), len(tr.clusters.byName), indexed, len(tr.policies))
	}
	for wildcard, hosts := range tr.below {
		for host := range hosts {
			if tr.sites[host] == nil {
				t.Errorf("host %q is kept below %q, but is gone", host, wildcard)
			}
		}
	}
	for key, s := range tr.services {
		if s == nil {
			t.Errorf("Service %s is kept, but is gone", key)
		}
	}
	for c := range maps.Keys(tr.noted) {
		if tr.clusters.byName[c.Name] != c {
			t.Errorf("notices of cluster %s are kept, but it is gone", c.Name)
		}
	}
}
