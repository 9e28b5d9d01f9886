package watch

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weirproxy/weir/k8s"
)

// follower is a source that runs, and what it told.
type follower struct {
	*Source
	t *testing.T

	mu       sync.Mutex
	changes  []k8s.Change
	statuses []key
}

// follow runs a source of a until the test ends.
func follow(t *testing.T, a *api, edit func(*Config)) *follower {
	t.Helper()
	f := &follower{t: t}
	c := Config{API: &rest.Config{Host: a.URL}, Agent: "test", StatusChanged: func(k key) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.statuses = append(f.statuses, k)
	}}
	if edit != nil {
		edit(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	f.Source = s
	f.start()
	return f
}

func (f *follower) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx, func(c k8s.Change) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if c.Objects != nil {
				c.Objects = c.Objects.Clone() // its maps are not for later
			}
			f.changes = append(f.changes, c)
		})
	}()
	f.t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			f.t.Error("Run did not end within 10 s")
		}
	})
}

// told returns how many changes were told.
func (f *follower) told() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.changes)
}

// change waits for change number n, from 0.
func (f *follower) change(n int) k8s.Change {
	f.t.Helper()
	eventually(f.t, "another change", func() bool { return f.told() > n })
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changes[n]
}

// objects waits until the last whole set is as ok says, and returns it.
func (f *follower) objects(what string, ok func(*k8s.Objects) bool) *k8s.Objects {
	f.t.Helper()
	var last *k8s.Objects
	eventually(f.t, what, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, c := range f.changes {
			if c.Objects != nil {
				last = c.Objects
			}
		}
		return last != nil && ok(last)
	})
	return last
}

// silent fails if another change is told within a moment that is long enough for
// it to come.
func (f *follower) silent(what string) {
	f.t.Helper()
	n := f.told()
	time.Sleep(2*gatherTime + 50*time.Millisecond)
	if now := f.told(); now != n {
		f.t.Fatalf("%s: %d changes more were told, want none: %+v", what, now-n, f.change(n))
	}
}

func (f *follower) kind(name string) KindStats {
	for _, k := range f.Stats().Kinds {
		if k.Kind == name {
			return k
		}
	}
	return KindStats{}
}

func ingressClass(controller string) *networkingv1.IngressClass {
	c := &networkingv1.IngressClass{}
	c.Name, c.Spec.Controller = "weir", controller
	return c
}

// ingress returns one of class weir with one rule.
func ingress(namespace, name, service string, secrets ...string) *networkingv1.Ingress {
	i := &networkingv1.Ingress{}
	i.Namespace, i.Name, i.UID = namespace, name, "uid-of-"+"ingress"
	i.Spec.IngressClassName = new("weir")
	i.Spec.Rules = []networkingv1.IngressRule{{Host: name + ".test"}}
	i.Spec.Rules[0].HTTP = &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
		Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
			Name: service, Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}
	for _, s := range secrets {
		i.Spec.TLS = append(i.Spec.TLS, networkingv1.IngressTLS{SecretName: s})
	}
	return i
}

func service(namespace, name string) *corev1.Service {
	s := &corev1.Service{}
	s.Namespace, s.Name = namespace, name
	s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}}
	return s
}

func slice(namespace, name, service string, addresses ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	s.Namespace, s.Name = namespace, name
	s.Labels = map[string]string{discoveryv1.LabelServiceName: service, "another": "label"}
	s.Ports = []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, NodeName: new("node-1"),
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "pod"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}})
	}
	return s
}

func secret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k"), "more": []byte("m")}}
}

// site puts what serves one host into a.
func site(a *api) {
	a.put("ingressclasses", ingressClass("weir.io/ingress"))
	a.put("services", service("t1", "web"))
	a.put("endpointslices", slice("t1", "web-a", "web", "10.0.0.1"))
	a.put("ingresses", ingress("t1", "web", "web"))
}

func at(namespace, name string) key { return key{Namespace: namespace, Name: name} }
