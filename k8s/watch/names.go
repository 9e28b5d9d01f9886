package watch

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// objectName reports whether an object can have the name: users write it, and it
// becomes part of a request.
func objectName(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// visible reports whether this installation may see what is in a namespace.
func (s *store) visible(namespace string) bool {
	return !s.selector || s.tables[namespaceKind][key{Name: namespace}] != nil
}

// classify has every Ingress decided upon anew, once for all changes that ask for it.
func (s *store) classify() {
	if s.unclassified {
		s.unclassified = false
		s.reclassify()
	}
}

// reclassify decides anew which Ingresses are ours.
func (s *store) reclassify() {
	classes := make(map[string]*networkingv1.IngressClass, len(s.tables[classKind]))
	for k, e := range s.tables[classKind] {
		classes[k.Name] = e.object.(*networkingv1.IngressClass)
	}
	s.serves = s.options.Serves(classes)
	for k, e := range s.tables[ingressKind] {
		s.edits.Ingresses[k] = true // it may have become visible, or invisible
		s.count(e, true)
	}
}

// count makes what e names count if e is there and ours, else not.
func (s *store) count(e *entry, there bool) {
	if e == nil {
		return
	}
	if there {
		i := e.object.(*networkingv1.Ingress)
		there = s.visible(i.Namespace) && s.serves(i)
	}
	if e.counts == there {
		return
	}
	e.counts = there
	for _, k := range e.names.services {
		s.countService(k, there)
	}
	for _, k := range e.names.secrets {
		s.countSecret(k, there)
	}
}

// countSecret notes that one more Ingress names a Secret, or one less.
func (s *store) countSecret(k key, more bool) {
	if more {
		s.secrets[k]++
		s.recounted = s.recounted || s.secrets[k] == 1
		return
	}
	if s.secrets[k]--; s.secrets[k] == 0 {
		delete(s.secrets, k)
		s.recounted = true
	}
}

// countService notes that one more Ingress leads to a Service, or one less. The
// slices of those that none leads to are kept packed.
func (s *store) countService(k key, more bool) {
	before := s.services[k]
	if more {
		s.services[k]++
	} else if s.services[k]--; before == 1 {
		delete(s.services, k)
	}
	if before > 1 || before == 1 && more {
		return
	}
	s.edits.Services[k] = true
	for slice, e := range s.byService[k] {
		s.edits.EndpointSlices[slice] = true
		if more {
			e.slice()
		} else {
			e.object = nil
		}
	}
}
