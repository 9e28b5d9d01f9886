package k8s

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTrimmedObjectsTranslateAlike trims every object of the golden tests' kind and
// of a random world: what comes out is the same.
func TestTrimmedObjectsTranslateAlike(t *testing.T) {
	for seed := range uint64(30) {
		w := newWorld(seed)
		w.changeConfigMap()
		options := Options{ConfigMap: "sys/c"}
		full := NewTranslator(options)
		want := dump(full, full.Apply(w.Clone()))
		trimmed := NewObjects()
		for k, o := range w.Ingresses {
			o = o.DeepCopy()
			o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
			o.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}"
			TrimIngress(o)
			if o.ManagedFields != nil || o.Annotations["kubectl.kubernetes.io/last-applied-configuration"] != "" {
				t.Fatalf("Ingress %+v is not trimmed", o)
			}
			trimmed.Ingresses[k] = o
		}
		for k, o := range w.IngressClasses {
			o = o.DeepCopy()
			TrimIngressClass(o)
			trimmed.IngressClasses[k] = o
		}
		for k, o := range w.Services {
			o = o.DeepCopy()
			TrimService(o)
			trimmed.Services[k] = o
		}
		for k, o := range w.EndpointSlices {
			o = o.DeepCopy()
			TrimEndpointSlice(o)
			trimmed.EndpointSlices[k] = o
		}
		for k, o := range w.ConfigMaps {
			o = o.DeepCopy()
			TrimConfigMap(o)
			trimmed.ConfigMaps[k] = o
		}
		tr := NewTranslator(options)
		if got := dump(tr, tr.Apply(trimmed)); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: trimmed\n%s\nwhole\n%s", seed, only(got, want), only(want, got))
		}
	}
}

func TestTrimmingKeepsWhatCounts(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "n", Namespace: "s", UID: "u", Labels: map[string]string{"a": "b"}, Finalizers: []string{"f"},
		Annotations: map[string]string{"a": "b"}}
	kept := metav1.ObjectMeta{Name: "n", Namespace: "s", UID: "u"}

	i := &networkingv1.Ingress{ObjectMeta: *meta.DeepCopy()}
	for _, key := range []string{"nginx.ingress.kubernetes.io/x", "weir.io/x", "kubernetes.io/ingress.class"} {
		i.Annotations[key] = "1"
	}
	i.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
	TrimIngress(i)
	if len(i.Annotations) != 3 || len(i.Status.LoadBalancer.Ingress) != 1 || i.Labels != nil {
		t.Errorf("Ingress %+v, want three annotations and the status", i)
	}

	c := &networkingv1.IngressClass{ObjectMeta: *meta.DeepCopy(), Spec: networkingv1.IngressClassSpec{Controller: "c", Parameters: &networkingv1.IngressClassParametersReference{}}}
	c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] = "true"
	TrimIngressClass(c)
	if c.Spec.Controller != "c" || c.Spec.Parameters != nil || len(c.Annotations) != 1 {
		t.Errorf("IngressClass %+v", c)
	}

	s := &corev1.Service{ObjectMeta: *meta.DeepCopy(), Spec: corev1.ServiceSpec{Type: "ExternalName", ClusterIP: "10.0.0.1", ExternalName: "x",
		TrafficDistribution: new("PreferClose"), InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyLocal),
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: "TCP", AppProtocol: new("h2c"), NodePort: 30000}}}}
	TrimService(s)
	if want := (corev1.ServiceSpec{Type: "ExternalName", TrafficDistribution: new("PreferClose"), InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyLocal),
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: "TCP", AppProtocol: new("h2c")}}}); !reflect.DeepEqual(s.Spec, want) || !reflect.DeepEqual(s.ObjectMeta, kept) {
		t.Errorf("Service %+v, want the spec %+v", s, want)
	}

	e := &discoveryv1.EndpointSlice{ObjectMeta: *meta.DeepCopy(), Endpoints: []discoveryv1.Endpoint{
		{Addresses: []string{"10.0.0.1"}, NodeName: new("n1"), Zone: new("z"), Hostname: new("h"), TargetRef: &corev1.ObjectReference{},
			Hints:      &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "z"}}},
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(false)}},
		{Addresses: []string{"10.0.0.2"}, NodeName: new("n1"), Conditions: discoveryv1.EndpointConditions{Ready: new(true)}},
	}}
	e.Labels[discoveryv1.LabelServiceName] = "a"
	TrimEndpointSlice(e)
	one, two := &e.Endpoints[0], &e.Endpoints[1]
	if len(e.Labels) != 1 || one.Hostname != nil || one.TargetRef != nil || one.Hints.ForZones[0].Name != "z" || *one.Zone != "z" || *one.NodeName != "n1" ||
		!*one.Conditions.Ready || *one.Conditions.Serving || one.Conditions.Terminating != nil {
		t.Errorf("endpoint %+v of a slice with labels %v", one, e.Labels)
	}
	if one.NodeName != two.NodeName || one.Conditions.Ready != two.Conditions.Ready {
		t.Error("equal names or conditions of two endpoints have their own memory")
	}
}
