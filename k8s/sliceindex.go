package k8s

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sliceIndex finds the EndpointSlices of a Service.
type sliceIndex struct {
	all       map[types.NamespacedName]*discoveryv1.EndpointSlice
	byService map[types.NamespacedName]map[string]*discoveryv1.EndpointSlice // by slice name
}

func newSliceIndex() *sliceIndex {
	return &sliceIndex{
		all:       make(map[types.NamespacedName]*discoveryv1.EndpointSlice),
		byService: make(map[types.NamespacedName]map[string]*discoveryv1.EndpointSlice),
	}
}

// update takes over the slices of o and returns the Services whose slices changed.
func (x *sliceIndex) update(o *Objects) map[types.NamespacedName]bool {
	changed := make(map[types.NamespacedName]bool)
	for key := range candidates(o.EndpointSlices, x.all, o.Edits, func(e *Edits) map[types.NamespacedName]bool { return e.EndpointSlices }) {
		if s := o.EndpointSlices[key]; x.all[key] != s {
			x.replace(key, s, changed)
		}
	}
	return changed
}

// replace puts s, nil for none, in the place of the slice key and adds the
// Services concerned to changed.
func (x *sliceIndex) replace(key types.NamespacedName, s *discoveryv1.EndpointSlice, changed map[types.NamespacedName]bool) {
	x.remove(key, changed)
	if s != nil {
		x.add(key, s, changed)
	}
}

func (x *sliceIndex) add(key types.NamespacedName, s *discoveryv1.EndpointSlice, changed map[types.NamespacedName]bool) {
	x.all[key] = s
	service := serviceOf(s)
	if x.byService[service] == nil {
		x.byService[service] = make(map[string]*discoveryv1.EndpointSlice)
	}
	x.byService[service][key.Name] = s
	changed[service] = true
}

func (x *sliceIndex) remove(key types.NamespacedName, changed map[types.NamespacedName]bool) {
	old := x.all[key]
	if old == nil {
		return
	}
	delete(x.all, key)
	service := serviceOf(old)
	delete(x.byService[service], key.Name)
	if len(x.byService[service]) == 0 {
		delete(x.byService, service)
	}
	changed[service] = true
}

func serviceOf(s *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
}
