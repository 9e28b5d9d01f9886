package watch

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/k8s"
)

type key = types.NamespacedName

func keyOf(o metav1.Object) key { return key{Namespace: o.GetNamespace(), Name: o.GetName()} }

// entry is what is kept of one object.
//
// Most EndpointSlices of a cluster belong to Services that no Ingress leads to, so
// a slice is kept as its trimmed protobuf, about 40 bytes for each endpoint, and
// decoded only while its Service counts.
type entry struct {
	object metav1.Object // immutable once it was told; nil: a slice that does not count
	uid    types.UID
	digest [sha256.Size]byte // of object without status; not of slices

	status  networkingv1.IngressLoadBalancerStatus // Ingress: kept out of object
	names   names                                  // Ingress: the other objects that it names
	version string                                 // Ingress: the resource version
	counts  bool                                   // Ingress: names are counted

	packed  []byte // EndpointSlice
	service key    // EndpointSlice: that it belongs to
}

// names are the objects that an Ingress refers to, without duplicates.
type names struct{ services, secrets []key }

// pack returns the entry of a trimmed object, which becomes the entry's own.
func pack(o metav1.Object, version string) (*entry, error) {
	e := &entry{uid: o.GetUID()}
	if i, ok := o.(*networkingv1.Ingress); ok {
		e.status, i.Status = i.Status.LoadBalancer, networkingv1.IngressStatus{}
		e.names, e.version = namesOf(i), version
	}
	wire, err := encode(o)
	if err != nil {
		return nil, err
	}
	if s, ok := o.(*discoveryv1.EndpointSlice); ok {
		e.packed, e.service = wire, key{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
		return e, nil
	}
	e.object, e.digest = o, sha256.Sum256(wire)
	return e, nil
}

// same reports whether e and f tell a translation the same.
func (e *entry) same(f *entry) bool {
	return e.uid == f.uid && e.digest == f.digest && bytes.Equal(e.packed, f.packed)
}

// sameStatus reports whether two load balancers have the same addresses.
func sameStatus(a, b networkingv1.IngressLoadBalancerStatus) bool {
	x, errA := encode(&a)
	y, errB := encode(&b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// encode returns the protobuf of o, equal for equal objects.
func encode(o any) ([]byte, error) {
	m, ok := o.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf", o)
	}
	return m.Marshal()
}

// slice returns the EndpointSlice of e, which it decodes if need be.
func (e *entry) slice() *discoveryv1.EndpointSlice {
	if e.object == nil {
		s := new(discoveryv1.EndpointSlice)
		if err := s.Unmarshal(e.packed); err != nil {
			panic(fmt.Sprintf("watch: a packed EndpointSlice can't be decoded: %v", err))
		}
		k8s.TrimEndpointSlice(s) // shares memory; there is nothing else to trim
		e.object = s
	}
	return e.object.(*discoveryv1.EndpointSlice)
}

// namesOf returns what i names, all of it in i's own namespace.
func namesOf(i *networkingv1.Ingress) names {
	var n names
	service := func(b *networkingv1.IngressBackend) {
		if b != nil && b.Service != nil {
			n.services = addName(n.services, i.Namespace, b.Service.Name)
		}
	}
	service(i.Spec.DefaultBackend)
	for r := range i.Spec.Rules {
		if http := i.Spec.Rules[r].HTTP; http != nil {
			for p := range http.Paths {
				service(&http.Paths[p].Backend)
			}
		}
	}
	for _, t := range i.Spec.TLS {
		n.secrets = addName(n.secrets, i.Namespace, t.SecretName)
	}
	return n
}

// addName adds a name to list if it is new and an object can have it.
func addName(list []key, namespace, name string) []key {
	k := key{Namespace: namespace, Name: name}
	for _, have := range list {
		if have == k {
			return list
		}
	}
	if !objectName(name) {
		return list
	}
	return append(list, k)
}

// reference returns how an Event names the object of e; only that of an Ingress has a
// resource version.
func (k *kind) reference(at key, e *entry) corev1.ObjectReference {
	return corev1.ObjectReference{
		Kind: k.name, APIVersion: k.group.String(), Namespace: at.Namespace, Name: at.Name, UID: e.uid,
		ResourceVersion: e.version,
	}
}
