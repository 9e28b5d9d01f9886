package k8s

import (
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The Trim functions remove from an object, in place, all that Weir makes no use
// of, so that a source keeps little and a change elsewhere in the object is none.
// What a translation reads must be kept here.

// TrimIngress keeps the spec, the load balancer's addresses of the status, and the
// annotations of the prefixes that have a meaning.
func TrimIngress(i *networkingv1.Ingress) {
	i.ObjectMeta = trimMeta(&i.ObjectMeta, func(key string) bool {
		return strings.HasPrefix(key, nginxPrefix) || strings.HasPrefix(key, weirPrefix) || key == classAnnotation
	})
}

// TrimIngressClass keeps the controller and whether the class is the default one.
func TrimIngressClass(c *networkingv1.IngressClass) {
	c.ObjectMeta = trimMeta(&c.ObjectMeta, func(key string) bool { return key == networkingv1.AnnotationIsDefaultIngressClass })
	c.Spec = networkingv1.IngressClassSpec{Controller: c.Spec.Controller}
}

// TrimService keeps type, traffic policies and the ports' names and numbers, also
// those of the pods, but not those of nodes.
func TrimService(s *corev1.Service) {
	s.ObjectMeta = trimMeta(&s.ObjectMeta, nil)
	for n, p := range s.Spec.Ports {
		s.Spec.Ports[n] = corev1.ServicePort{Name: p.Name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: p.Port, TargetPort: p.TargetPort}
	}
	s.Spec = corev1.ServiceSpec{
		Type: s.Spec.Type, Ports: s.Spec.Ports,
		InternalTrafficPolicy: s.Spec.InternalTrafficPolicy, TrafficDistribution: s.Spec.TrafficDistribution,
	}
	s.Status = corev1.ServiceStatus{}
}

// TrimEndpointSlice keeps addresses, conditions, place and hints of the endpoints.
// Equal names and truths share their memory.
func TrimEndpointSlice(s *discoveryv1.EndpointSlice) {
	service, labelled := s.Labels[discoveryv1.LabelServiceName]
	s.ObjectMeta = trimMeta(&s.ObjectMeta, nil)
	if labelled {
		s.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	}
	places := make(texts)
	for n := range s.Endpoints {
		e := &s.Endpoints[n]
		s.Endpoints[n] = discoveryv1.Endpoint{
			Addresses: e.Addresses,
			Conditions: discoveryv1.EndpointConditions{
				Ready: truth(e.Conditions.Ready), Serving: truth(e.Conditions.Serving), Terminating: truth(e.Conditions.Terminating),
			},
			NodeName: places.share(e.NodeName), Zone: places.share(e.Zone), Hints: e.Hints,
		}
	}
}

// TrimConfigMap keeps the text values.
func TrimConfigMap(m *corev1.ConfigMap) {
	m.ObjectMeta = trimMeta(&m.ObjectMeta, nil)
	m.BinaryData = nil
}

// TrimSecret keeps the type and what TLS makes use of.
func TrimSecret(s *corev1.Secret) {
	s.ObjectMeta = trimMeta(&s.ObjectMeta, nil)
	kept := make(map[string][]byte, 3)
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, corev1.ServiceAccountRootCAKey} {
		if value, ok := s.Data[key]; ok {
			kept[key] = value
		}
	}
	s.Data, s.StringData = kept, nil
}

// TrimNode keeps the labels of its place and its addresses.
func TrimNode(n *corev1.Node) {
	labels := make(map[string]string, 2)
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
		if value, ok := n.Labels[key]; ok {
			labels[key] = value
		}
	}
	n.ObjectMeta = trimMeta(&n.ObjectMeta, nil)
	n.Labels = labels
	n.Spec = corev1.NodeSpec{}
	n.Status = corev1.NodeStatus{Addresses: n.Status.Addresses}
}

// TrimNamespace keeps the name: what is selected is for the API server to tell.
func TrimNamespace(n *corev1.Namespace) {
	n.ObjectMeta = trimMeta(&n.ObjectMeta, nil)
	n.Spec, n.Status = corev1.NamespaceSpec{}, corev1.NamespaceStatus{}
}

// trimMeta returns what is kept of m: its identity, its age and the annotations
// whose keys keep accepts, nil for none.
func trimMeta(m *metav1.ObjectMeta, keep func(key string) bool) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, CreationTimestamp: m.CreationTimestamp}
	for key, value := range m.Annotations {
		if keep == nil || !keep(key) {
			continue
		}
		if out.Annotations == nil {
			out.Annotations = make(map[string]string)
		}
		out.Annotations[key] = value
	}
	return out
}

// texts are equal strings of one object that share their memory, with those of
// other objects too.
type texts map[string]*string

func (t texts) share(p *string) *string {
	if p == nil {
		return nil
	}
	q := t[*p]
	if q == nil {
		v := unique.Make(*p).Value()
		q = &v
		t[v] = q
	}
	return q
}

// truths are what all conditions point to. Nobody writes them.
var truths = [2]bool{false, true}

func truth(p *bool) *bool {
	switch {
	case p == nil:
		return nil
	case *p:
		return &truths[1]
	}
	return &truths[0]
}
