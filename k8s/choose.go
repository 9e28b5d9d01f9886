package k8s

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// choose returns the Ingresses that are ours, read and sorted by age. Those that
// did not change since the last call are not read again.
func (t *Translator) choose(o *Objects) (list []*ingress, notices []Notice) {
	c := newClasses(t.options, o.IngressClasses)
	notices = c.notices
	read := make(map[types.NamespacedName]*ingress, len(o.Ingresses))
	for key, object := range o.Ingresses {
		if !t.options.watches(key.Namespace) {
			continue
		}
		m, warning := c.of(object)
		if warning != "" {
			notices = append(notices, classNotice(object, m, warning))
		}
		if m != ours {
			continue
		}
		i := t.read[key]
		if i == nil || i.object != object {
			i = readIngress(object, &t.known)
			i.undated = o.origin[ref{"Ingress", key}].undated
		}
		read[key] = i
		list = append(list, i)
	}
	t.read = read
	slices.SortFunc(list, byAge)
	return list, notices
}

func (o Options) watches(namespace string) bool {
	return len(o.WatchNamespaces) == 0 || slices.Contains(o.WatchNamespaces, namespace)
}

func classNotice(i *networkingv1.Ingress, m membership, message string) Notice {
	n := Notice{Severity: Warning, Kind: "Ingress", Namespace: i.Namespace, Name: i.Name,
		Field: "spec.ingressClassName", Reason: "ClassOverruled", Message: message}
	if m == homeless {
		n.Reason = "NoClass"
		n.Remedy = "set ingressClassName to an IngressClass of a controller that Weir serves"
	}
	return n
}

// locate fills in where the object of n stands.
func locate(origin map[ref]position, n *Notice) {
	if p, ok := origin[ref{n.Kind, types.NamespacedName{Namespace: n.Namespace, Name: n.Name}}]; ok && n.File == "" {
		n.File, n.Line = p.file, p.line
	}
}
