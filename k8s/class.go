package k8s

import (
	"cmp"
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
)

// DefaultControllers are the controllers of IngressClasses that Weir serves.
var DefaultControllers = []string{"weir.io/ingress", "k8s.io/ingress-nginx"}

// classAnnotation is the old way to name a class.
const classAnnotation = "kubernetes.io/ingress.class"

// classAnnotations are the values of the old class annotation that mean a
// controller although no IngressClass of that name exists.
var classAnnotations = map[string]string{"weir": "weir.io/ingress", "nginx": "k8s.io/ingress-nginx"}

// classes decides which Ingresses are ours.
type classes struct {
	controllers []string
	only        string // class name, "" = any of the controllers
	withoutToo  bool
	byName      map[string]*networkingv1.IngressClass
	def         string // name of the default class, "" if there is none
	notices     []Notice
}

func newClasses(o Options, byName map[string]*networkingv1.IngressClass) *classes {
	c := &classes{controllers: o.ControllerClasses, only: o.IngressClass, withoutToo: o.WatchWithoutClass, byName: byName}
	if len(c.controllers) == 0 {
		c.controllers = DefaultControllers
	}
	var defs []*networkingv1.IngressClass
	for _, class := range byName {
		if class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
			defs = append(defs, class)
		}
	}
	// Like the API server's admission: the youngest, then the first by name.
	slices.SortFunc(defs, func(a, b *networkingv1.IngressClass) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for n, class := range defs {
		if n == 0 {
			c.def = class.Name
			continue
		}
		c.notices = append(c.notices, Notice{Severity: Warning, Kind: "IngressClass", Name: class.Name,
			Field: "metadata.annotations[" + networkingv1.AnnotationIsDefaultIngressClass + "]", Reason: "SecondDefaultClass",
			Message: fmt.Sprintf("the default class is %s, which is younger", c.def), Remedy: "mark one class only"})
	}
	return c
}

// membership says whether an Ingress is ours.
type membership uint8

const (
	foreign  membership = iota // another controller's, none of our business
	ours                       // served
	homeless                   // nobody's, as far as can be seen
)

// of returns the membership of i, and for ours and homeless what its user should
// know ("" if nothing).
func (c *classes) of(i *networkingv1.Ingress) (m membership, warning string) {
	var name string
	if i.Spec.IngressClassName != nil {
		name = *i.Spec.IngressClassName
	}
	// The annotation wins over the field (Ingress API, spec.ingressClassName).
	if old, ok := i.Annotations[classAnnotation]; ok && old != "" {
		if name != "" && name != old {
			warning = fmt.Sprintf("ingressClassName %q is overruled by the annotation kubernetes.io/ingress.class: %q", name, old)
		}
		if c.byName[old] == nil && (c.only != "" && c.only == old || c.only == "" && slices.Contains(c.controllers, classAnnotations[old])) {
			return ours, warning
		}
		name = old
	}
	if name == "" {
		name = c.def
	}
	if name == "" {
		if c.withoutToo {
			return ours, ""
		}
		return homeless, "the Ingress has no class and there is no default class: it is not served"
	}
	class := c.byName[name]
	switch {
	case class == nil:
		return homeless, fmt.Sprintf("IngressClass %q does not exist: the Ingress is not served", name)
	case !slices.Contains(c.controllers, class.Spec.Controller), c.only != "" && c.only != name:
		return foreign, ""
	}
	return ours, warning
}

// Serves returns what tells whether an Ingress is one that o serves, given all
// classes.
func (o Options) Serves(byName map[string]*networkingv1.IngressClass) func(*networkingv1.Ingress) bool {
	c := newClasses(o, byName)
	return func(i *networkingv1.Ingress) bool {
		m, _ := c.of(i)
		return m == ours && o.watches(i.Namespace)
	}
}
