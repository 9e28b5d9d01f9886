package watch

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weirproxy/weir/k8s"
)

// kind is one kind of objects that can be watched.
type kind struct {
	name       string // as in notices, such as "EndpointSlice"
	resource   string // as in URLs and roles, such as "endpointslices"
	group      schema.GroupVersion
	namespaced bool
	// optional kinds may be forbidden: the source goes on without them.
	optional bool
	list     func() runtime.Object // an empty list
	// trim removes in place what is not kept; it reports whether o is of the kind.
	trim func(o runtime.Object) bool
}

// trimmer makes the trim of a kind.
func trimmer[T runtime.Object](trim func(T)) func(runtime.Object) bool {
	return func(o runtime.Object) bool {
		x, ok := o.(T)
		if ok {
			trim(x)
		}
		return ok
	}
}

// The kinds, in the order in which statistics show them.
var (
	ingressKind = &kind{
		name: "Ingress", resource: "ingresses", group: networkingv1.SchemeGroupVersion, namespaced: true,
		list: func() runtime.Object { return new(networkingv1.IngressList) }, trim: trimmer(k8s.TrimIngress),
	}
	classKind = &kind{
		name: "IngressClass", resource: "ingressclasses", group: networkingv1.SchemeGroupVersion,
		list: func() runtime.Object { return new(networkingv1.IngressClassList) }, trim: trimmer(k8s.TrimIngressClass),
	}
	serviceKind = &kind{
		name: "Service", resource: "services", group: corev1.SchemeGroupVersion, namespaced: true,
		list: func() runtime.Object { return new(corev1.ServiceList) }, trim: trimmer(k8s.TrimService),
	}
	sliceKind = &kind{
		name: "EndpointSlice", resource: "endpointslices", group: discoveryv1.SchemeGroupVersion, namespaced: true,
		list: func() runtime.Object { return new(discoveryv1.EndpointSliceList) }, trim: trimmer(k8s.TrimEndpointSlice),
	}
	namespaceKind = &kind{
		name: "Namespace", resource: "namespaces", group: corev1.SchemeGroupVersion,
		list: func() runtime.Object { return new(corev1.NamespaceList) }, trim: trimmer(k8s.TrimNamespace),
	}
	configMapKind = &kind{
		name: "ConfigMap", resource: "configmaps", group: corev1.SchemeGroupVersion, namespaced: true, optional: true,
		list: func() runtime.Object { return new(corev1.ConfigMapList) }, trim: trimmer(k8s.TrimConfigMap),
	}
	secretKind = &kind{
		name: "Secret", resource: "secrets", group: corev1.SchemeGroupVersion, namespaced: true, optional: true,
		list: func() runtime.Object { return new(corev1.SecretList) }, trim: trimmer(k8s.TrimSecret),
	}
	nodeKind = &kind{
		name: "Node", resource: "nodes", group: corev1.SchemeGroupVersion, optional: true,
		list: func() runtime.Object { return new(corev1.NodeList) }, trim: trimmer(k8s.TrimNode),
	}
	kinds = []*kind{ingressKind, classKind, serviceKind, sliceKind, namespaceKind, configMapKind, secretKind, nodeKind}
)
