package k8s

import (
	"cmp"
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
)

// member is what is known of one Ingress, ours or not.
type member struct {
	object   *networkingv1.Ingress
	*ingress          // what it asks for; nil if it is not ours
	class    []Notice // what is to say about its class
}

// compareIngresses takes over Ingresses and classes.
func (w *work) compareIngresses(o *Objects) {
	t := w.t
	all := t.class == nil || !maps.Equal(t.classes, o.IngressClasses)
	if all {
		if t.class != nil {
			w.notices.remove = append(w.notices.remove, t.class.notices...)
		}
		t.classes = maps.Clone(o.IngressClasses)
		t.class = newClasses(t.options, t.classes)
		w.notices.add = append(w.notices.add, t.class.notices...)
	}
	edits := o.Edits
	if all {
		edits = nil
	}
	for key := range candidates(o.Ingresses, t.ingresses, edits, func(e *Edits) map[types.NamespacedName]bool { return e.Ingresses }) {
		object, m := o.Ingresses[key], t.ingresses[key]
		switch {
		case object == nil && m != nil:
			w.replace(key, m, nil)
		case object != nil && (all || m == nil || m.object != object) && t.options.watches(key.Namespace):
			w.replace(key, m, t.newMember(m, key, object, o))
		}
	}
}

// newMember reads an Ingress. What old, nil if there was none, made of the same
// object is taken over.
func (t *Translator) newMember(old *member, key types.NamespacedName, object *networkingv1.Ingress, o *Objects) *member {
	m := &member{object: object}
	membership, warning := t.class.of(object)
	if warning != "" {
		m.class = []Notice{classNotice(object, membership, warning)}
	}
	if membership != ours {
		return m
	}
	if old != nil && old.ingress != nil && old.object == object {
		m.ingress = old.ingress
		return m
	}
	m.ingress = readIngress(object, &t.known)
	m.undated = o.origin[ref{"Ingress", key}].undated
	return m
}

// replace puts next, nil for none, in the place of old.
func (w *work) replace(key types.NamespacedName, old, next *member) {
	t := w.t
	var before, after *ingress
	if old != nil {
		before = old.ingress
		w.notices.remove = append(w.notices.remove, old.class...)
		delete(t.ingresses, key)
	}
	if next != nil {
		after = next.ingress
		w.notices.add = append(w.notices.add, next.class...)
		t.ingresses[key] = next
	}
	if before == after {
		return
	}
	if after != nil {
		after.policy = t.policies.take(after, t.global.defaults) // first, so that an equal one stays
	}
	if before != nil {
		w.leave(before)
	}
	if after != nil {
		w.join(after)
	}
}

// join makes an Ingress count.
func (w *work) join(i *ingress) {
	t := w.t
	t.last.Ingresses++
	w.notices.add = append(w.notices.add, i.notices...)
	for _, host := range i.claims() {
		s := t.site(host)
		s.claims = insert(s.claims, i)
		w.dirty[host] = true
	}
	if i.fallback != nil {
		t.fallbacks = insert(t.fallbacks, i)
		t.site("")
		w.dirty[""] = true
	}
}

// leave makes an Ingress count no more.
func (w *work) leave(i *ingress) {
	t := w.t
	t.last.Ingresses--
	w.notices.remove = append(w.notices.remove, i.notices...)
	t.policies.release(i)
	for _, host := range i.claims() {
		s := t.site(host)
		s.claims = without(s.claims, i)
		w.dirty[host] = true
	}
	if i.fallback != nil {
		t.fallbacks = without(t.fallbacks, i)
		w.dirty[""] = true
	}
}

// insert adds i to a list sorted by age.
func insert(list []*ingress, i *ingress) []*ingress {
	at, _ := slices.BinarySearchFunc(list, i, byAge)
	return slices.Insert(list, at, i)
}

// without removes i from a list sorted by age.
func without(list []*ingress, i *ingress) []*ingress {
	at, ok := slices.BinarySearchFunc(list, i, byAge)
	if !ok {
		return list
	}
	return slices.Delete(list, at, at+1)
}

// byAge orders the oldest first.
func byAge(a, b *ingress) int {
	return cmp.Or(
		a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time),
		cmp.Compare(a.key.Namespace, b.key.Namespace),
		cmp.Compare(a.key.Name, b.key.Name),
	)
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
	return n.advised()
}

// locate fills in where the object of n stands.
func locate(origin map[ref]position, n *Notice) {
	if p, ok := origin[ref{n.Kind, types.NamespacedName{Namespace: n.Namespace, Name: n.Name}}]; ok && n.File == "" {
		n.File, n.Line = p.file, p.line
	}
}
