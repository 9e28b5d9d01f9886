package k8s

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// many returns n Ingresses of two paths each, with n Services of ten endpoints.
func many(n int) *Objects {
	o := NewObjects()
	c := &networkingv1.IngressClass{}
	c.Name, c.Spec.Controller = "weir", "weir.io/ingress"
	o.IngressClasses[c.Name] = c
	for i := range n {
		key := name(fmt.Sprintf("ns-%d", i%50), fmt.Sprintf("app-%d", i))
		s := &corev1.Service{}
		s.Namespace, s.Name = key.Namespace, key.Name
		s.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		o.Services[key] = s
		e := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(8080))}}}
		e.Namespace, e.Name, e.Labels = key.Namespace, key.Name, map[string]string{discoveryv1.LabelServiceName: key.Name}
		for k := range 10 {
			e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.%d", k, i/256, i%256)}})
		}
		o.EndpointSlices[key] = e
		in := &networkingv1.Ingress{}
		in.Namespace, in.Name = key.Namespace, key.Name
		in.Annotations = map[string]string{nginxPrefix + "proxy-body-size": "8m"}
		in.Spec.IngressClassName = new("weir")
		to := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: key.Name, Port: networkingv1.ServiceBackendPort{Number: 80}}}
		in.Spec.Rules = []networkingv1.IngressRule{{Host: key.Name + ".test"}}
		in.Spec.Rules[0].HTTP = &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{
			{Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: to}, {Path: "/api", PathType: new(networkingv1.PathTypePrefix), Backend: to}}}
		o.Ingresses[key] = in
	}
	return o
}

// BenchmarkFirstApply is a cold start: nothing is known yet.
func BenchmarkFirstApply(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		o := many(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r := NewTranslator(Options{Workers: 2}).Apply(o); r.Routes != 2*n {
					b.Fatalf("%d routes, want %d", r.Routes, 2*n)
				}
			}
		})
	}
}

// BenchmarkIngressChange is one new path among many Ingresses.
func BenchmarkIngressChange(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		o := many(n)
		key := name("ns-0", "app-0")
		other := o.Ingresses[key].DeepCopy()
		other.Spec.Rules[0].HTTP.Paths[1].Path = "/v2"
		changed := o.Clone()
		changed.Ingresses[key] = other
		t := NewTranslator(Options{Workers: 2})
		t.Apply(o)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if r := t.Apply([]*Objects{changed, o}[i%2]); r.Table == nil {
					b.Fatal("no table")
				}
			}
			t.Apply(o)
		})
	}
}

// BenchmarkSliceChange is one pod that comes or goes.
func BenchmarkSliceChange(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		o := many(n)
		key := name("ns-0", "app-0")
		other := o.EndpointSlices[key].DeepCopy()
		other.Endpoints = other.Endpoints[:9]
		changed := *o
		changed.EndpointSlices = maps.Clone(o.EndpointSlices)
		changed.EndpointSlices[key] = other
		t := NewTranslator(Options{Workers: 2})
		t.Apply(o)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if r := t.Apply([]*Objects{&changed, o}[i%2]); r.EndpointsChanged != 1 {
					b.Fatal("no change")
				}
			}
			t.Apply(o)
		})
	}
}
