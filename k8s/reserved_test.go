package k8s

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// What the node's own services are must not be published by who may write an
// EndpointSlice.
func TestAddressesOfTheClusterItselfAreRefused(t *testing.T) {
	const manifests = class + `
---
kind: Service
apiVersion: v1
metadata: {name: a, namespace: t1}
spec: {ports: [{name: api, port: 1}, {name: kubelet, port: 2}, {name: readonly, port: 3}, {name: admin, port: 4}, {name: web, port: 5}]}
---
kind: EndpointSlice
apiVersion: discovery.k8s.io/v1
metadata: {name: a-1, namespace: t1, labels: {kubernetes.io/service-name: a}}
addressType: IPv4
ports: [{name: api, port: 6443}, {name: kubelet, port: 10250}, {name: readonly, port: 10255}, {name: admin, port: 9901}, {name: web, port: 8080}]
endpoints:
- {addresses: [192.0.2.1]} # the API server, by its own Service
- {addresses: [192.0.2.2]} # the API server, by Weir's own configuration
- {addresses: [192.0.2.3]} # this node, by its Node object
- {addresses: [192.0.2.4]} # this node, by its interfaces
- {addresses: [10.0.0.1]} # a pod
---
kind: EndpointSlice
apiVersion: discovery.k8s.io/v1
metadata: {name: kubernetes, namespace: default, labels: {kubernetes.io/service-name: kubernetes}}
addressType: IPv4
ports: [{name: https, port: 6443}]
endpoints: [{addresses: [192.0.2.1]}]
`
	text := manifests
	for _, port := range []string{"api", "kubelet", "readonly", "admin", "web"} {
		text += strings.Replace(ingressOf("t1", port, port+".test", "/", "a"), "number: 80", "name: "+port, 1)
	}
	o, _ := parse(t, text)
	o.Node = &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: "192.0.2.3"}, {Address: "name.test"}}}}
	tr := NewTranslator(Options{
		APIServers: []netip.AddrPort{netip.MustParseAddrPort("[::ffff:192.0.2.2]:6443")}, NodeAddresses: []netip.Addr{netip.MustParseAddr("::ffff:192.0.2.4")}, NodePorts: []uint16{9901},
	})
	r := tr.Apply(o)
	all := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}
	for port, refused := range map[string][]string{
		":6443": {"192.0.2.1", "192.0.2.2"}, ":10250": {"192.0.2.1", "192.0.2.3", "192.0.2.4"}, ":10255": {"192.0.2.1", "192.0.2.3", "192.0.2.4"},
		":9901": {"192.0.2.1", "192.0.2.3", "192.0.2.4"}, ":8080": nil,
	} {
		wanted := []string{"10.0.0.1" + port}
		for _, a := range all {
			if !slices.Contains(refused, a) {
				wanted = append(wanted, a+port)
			}
		}
		if got := clusterWith(t, r, port); !slices.Equal(got, wanted) {
			t.Errorf("port %s: endpoints %v, want %v", port, got, wanted)
		}
	}
	if n := reasons(r.Notices)["RefusedAddress"]; n != 11 {
		t.Errorf("%d addresses refused with a notice, want 11: %v", n, r.Notices)
	}
	for _, n := range r.Notices {
		if n.Reason == "RefusedAddress" && (n.Kind != "EndpointSlice" || n.Name != "a-1" || n.Severity != Error) {
			t.Errorf("notice %+v, want an error of the slice", n)
		}
	}

	// The API server moves: what was refused is an address as any other, and back.
	moved := o.EndpointSlices[apiService].DeepCopy()
	moved.Endpoints[0].Addresses = []string{"192.0.2.9"}
	r = tr.ApplySlices(map[types.NamespacedName]*discoveryv1.EndpointSlice{apiService: moved})
	if got := clusterWith(t, r, ":6443"); !slices.Contains(got, "192.0.2.1:6443") || slices.Contains(got, "192.0.2.2:6443") {
		t.Errorf("endpoints %v once the API server moved, want 192.0.2.1 and not 192.0.2.2", got)
	}
}

// clusterWith returns the endpoints of the cluster whose first has this port.
func clusterWith(t *testing.T, r Result, port string) []string {
	t.Helper()
	for _, c := range r.ClusterList {
		if list := addresses(c); len(list) > 0 && strings.HasSuffix(list[0], port) {
			return list
		}
	}
	t.Fatalf("no cluster has endpoints with port %s", port)
	return nil
}

// TestARenamedPortKeepsItsPods renames a port in a Service and its slice, one after
// the other in both orders: the pods serve all the time, and those that leave meanwhile don't.
func TestARenamedPortKeepsItsPods(t *testing.T) {
	text := class + service("t1", "a", "10.0.0.1") + ingressOf("t1", "i", "a.test", "/", "a")
	text = strings.Replace(text, "ports: [{port: 80", "ports: [{name: old, port: 80", 1)
	text = strings.Replace(text, `ports: [{name: ""`, `ports: [{name: old`, 1)
	o, _ := parse(t, text)
	key := name("t1", "a-1")
	sliceOf := func(port string, addresses ...string) *discoveryv1.EndpointSlice {
		s := o.EndpointSlices[key].DeepCopy()
		s.Ports[0].Name, s.Endpoints = &port, nil
		for _, a := range addresses {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
		}
		return s
	}
	renamed := o.Clone()
	renamed.Services[name("t1", "a")] = o.Services[name("t1", "a")].DeepCopy()
	renamed.Services[name("t1", "a")].Spec.Ports[0].Name = "new"
	for _, first := range []string{"Service", "slice"} {
		tr := NewTranslator(Options{})
		r := tr.Apply(o)
		is := func(what string, wanted ...string) {
			t.Helper()
			if got := addresses(r.ClusterList[0]); !slices.Equal(got, wanted) {
				t.Errorf("%s first, %s: endpoints %v, want %v", first, what, got, wanted)
			}
		}
		is("before", "10.0.0.1:8080")
		r = tr.ApplySlices(map[types.NamespacedName]*discoveryv1.EndpointSlice{key: sliceOf("old", "10.0.0.1", "10.0.0.2")})
		is("two pods", "10.0.0.1:8080", "10.0.0.2:8080")
		now := renamed.Clone()
		if first == "Service" {
			now.EndpointSlices[key] = sliceOf("old", "10.0.0.1", "10.0.0.2")
			r = tr.Apply(now)
			is("renamed", "10.0.0.1:8080", "10.0.0.2:8080")
			if reasons(r.Notices)["NoSlicePort"] != 1 {
				t.Errorf("notices %v, want NoSlicePort", r.Notices)
			}
			r = tr.ApplySlices(map[types.NamespacedName]*discoveryv1.EndpointSlice{key: sliceOf("old", "10.0.0.2", "10.0.0.3")})
			is("a pod left and another came", "10.0.0.2:8080")
			r = tr.ApplySlices(map[types.NamespacedName]*discoveryv1.EndpointSlice{key: sliceOf("new", "10.0.0.2", "10.0.0.3")})
		} else {
			r = tr.ApplySlices(map[types.NamespacedName]*discoveryv1.EndpointSlice{key: sliceOf("new", "10.0.0.2", "10.0.0.3")})
			is("renamed", "10.0.0.2:8080")
			now.EndpointSlices[key] = sliceOf("new", "10.0.0.2", "10.0.0.3")
			r = tr.Apply(now)
		}
		is("both renamed", "10.0.0.2:8080", "10.0.0.3:8080")
		if len(r.Notices) != 0 {
			t.Errorf("%s first: notices %v after both, want none", first, r.Notices)
		}
	}
}

// TestAnotherPortOfTheSamePodsServesAtOnce: an Ingress goes over to a port that its
// Service has just got, before slices name it.
func TestAnotherPortOfTheSamePodsServesAtOnce(t *testing.T) {
	for _, c := range []struct {
		target string
		want   []string
	}{{"8080", []string{"10.0.0.1:8080"}}, {"9090", []string{}}} {
		text := class + service("t1", "a", "10.0.0.1") + ingressOf("t1", "i", "a.test", "/", "a")
		text = strings.Replace(text, "ports: [{port: 80", "ports: [{name: old, port: 80", 1)
		text = strings.Replace(text, `ports: [{name: ""`, `ports: [{name: old`, 1)
		o, _ := parse(t, text)
		tr := NewTranslator(Options{})
		tr.Apply(o)
		target := intstr.Parse(c.target)
		now := o.Clone()
		s := o.Services[name("t1", "a")].DeepCopy()
		s.Spec.Ports[0].TargetPort = intstr.FromInt32(8080)
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "new", Port: 81, TargetPort: target})
		TrimService(s) // as it comes from an API server
		now.Services[name("t1", "a")] = s
		tr.Apply(now)
		now = now.Clone()
		i := o.Ingresses[name("t1", "i")].DeepCopy()
		i.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port.Number = 81
		now.Ingresses[name("t1", "i")] = i
		r := tr.Apply(now)
		if got := addresses(r.ClusterList[0]); !slices.Equal(got, c.want) {
			t.Errorf("target %s: %s has endpoints %v, want %v", c.target, r.ClusterList[0].Name, got, c.want)
		}
		slice := o.EndpointSlices[name("t1", "a-1")].DeepCopy()
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: new("new"), Port: new(int32(8081))})
		r = tr.ApplySlices(map[types.NamespacedName]*discoveryv1.EndpointSlice{name("t1", "a-1"): slice})
		if got := addresses(r.ClusterList[0]); !slices.Equal(got, []string{"10.0.0.1:8081"}) {
			t.Errorf("target %s: with a slice that names the port %v, want that of the slice", c.target, got)
		}
	}
}
