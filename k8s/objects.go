package k8s

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Objects is one consistent set of objects, whatever the source.
//
// The objects are shared and must not be edited once they are in a set: a
// changed object is a new pointer, and an equal pointer means "not changed". The
// maps may be read until the source tells the next change.
type Objects struct {
	Ingresses      map[types.NamespacedName]*networkingv1.Ingress
	IngressClasses map[string]*networkingv1.IngressClass
	Services       map[types.NamespacedName]*corev1.Service
	EndpointSlices map[types.NamespacedName]*discoveryv1.EndpointSlice
	ConfigMaps     map[types.NamespacedName]*corev1.ConfigMap
	Secrets        map[types.NamespacedName]*corev1.Secret

	// Node is the node that the agent runs on; nil if it is not known.
	Node *corev1.Node

	// Edits say what differs from the set that the same source told before; nil if
	// it does not say.
	Edits *Edits

	// origin says where in which file an object stands; nil for other sources.
	origin map[ref]position
}

// Edits name the objects that may differ from those of an earlier set: new ones,
// changed ones and those that are gone. Kinds of which there are few are not named.
type Edits struct {
	Ingresses      map[types.NamespacedName]bool
	Services       map[types.NamespacedName]bool
	EndpointSlices map[types.NamespacedName]bool
}

// NewEdits returns empty edits that can be filled.
func NewEdits() *Edits {
	return &Edits{
		Ingresses: make(map[types.NamespacedName]bool), Services: make(map[types.NamespacedName]bool),
		EndpointSlices: make(map[types.NamespacedName]bool),
	}
}

// ref names an object within a set.
type ref struct {
	kind string
	types.NamespacedName
}

// position is the place of an object in a file.
type position struct {
	file string
	line int // of the first line of its document, from 1
	// undated objects have no creationTimestamp of their own.
	undated bool
}

// NewObjects returns an empty set whose maps can be filled.
func NewObjects() *Objects {
	return &Objects{
		Ingresses:      make(map[types.NamespacedName]*networkingv1.Ingress),
		IngressClasses: make(map[string]*networkingv1.IngressClass),
		Services:       make(map[types.NamespacedName]*corev1.Service),
		EndpointSlices: make(map[types.NamespacedName]*discoveryv1.EndpointSlice),
		ConfigMaps:     make(map[types.NamespacedName]*corev1.ConfigMap),
		Secrets:        make(map[types.NamespacedName]*corev1.Secret),
		origin:         make(map[ref]position),
	}
}
