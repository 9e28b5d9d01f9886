package k8s

import (
	"fmt"
	"maps"
	"slices"
)

// claims returns the hosts that i claims. An Ingress with nothing but a default
// backend claims every host that nobody names.
func (i *ingress) claims() []string {
	if len(i.object.Spec.Rules) == 0 && i.fallback != nil {
		return []string{""}
	}
	return i.hosts
}

// claimHosts finds out who owns each dirty host, and makes those dirty too that a
// dirty wildcard covers.
//
// An owner stays the owner as long as any of its Ingresses names the host, so a
// host that is served can't be taken by editing an older object. A free host
// goes to the oldest claim. An exact host under another namespace's wildcard is not
// free, unless it was there first.
func (w *work) claimHosts() {
	t := w.t
	for _, host := range slices.Collect(maps.Keys(w.dirty)) {
		for below := range t.below[host] {
			w.dirty[below] = true
		}
	}
	if t.options.SharedHosts {
		return
	}
	free := make(map[*ingress]bool) // those that claim a host without owner
	for host := range w.dirty {
		s := t.site(host)
		s.owned = s.owned && s.oldest(s.owner) != nil
		if !s.owned {
			for _, i := range s.claims {
				free[i] = true
			}
		}
	}
	for _, i := range slices.SortedFunc(maps.Keys(free), byAge) {
		for _, host := range i.claims() {
			if s := t.sites[host]; w.dirty[host] && !s.owned && !t.covered(host, i.key.Namespace) {
				s.owned, s.owner = true, i.key.Namespace
			}
		}
	}
}

// covered reports whether host is under a wildcard of another namespace.
func (t *Translator) covered(host, namespace string) bool {
	wildcard := wildcardOf(host)
	if wildcard == "" {
		return false
	}
	s := t.sites[wildcard]
	return s != nil && s.owned && s.owner != namespace
}

// oldest returns the oldest Ingress of a namespace that claims the host, nil if none
// does.
func (s *site) oldest(namespace string) *ingress {
	for _, i := range s.claims {
		if i.key.Namespace == namespace {
			return i
		}
	}
	return nil
}

// allows reports whether i may add routes to the host.
func (b *build) allows(i *ingress) bool {
	return b.t.options.SharedHosts || b.owned && b.owner == i.key.Namespace
}

// refusal returns the notice for i, which may not have the host of s.
func (t *Translator) refusal(i *ingress, s *site) Notice {
	n := Notice{
		Severity: Error, Kind: "Ingress", Namespace: i.key.Namespace, Name: i.key.Name,
		Field: "spec.rules", Reason: "HostAlreadyClaimed",
		Remedy: "use another host, or move the Ingress to the namespace that owns it",
	}
	won := s
	switch {
	case s.host == "":
		n.Message = fmt.Sprintf("rules without host belong to namespace %q, which claimed them first: they are left out", s.owner)
	case s.owned:
		n.Message = fmt.Sprintf("host %q belongs to namespace %q, which claimed it first: its rules are left out", s.host, s.owner)
	default:
		won = t.sites[wildcardOf(s.host)]
		n.Message = fmt.Sprintf("host %q is covered by %q of namespace %q, which was claimed first: its rules are left out",
			s.host, won.host, won.owner)
	}
	if owner := won.oldest(won.owner); i.undated || owner != nil && owner.undated {
		n.Message += ". Which was first is told by the times of their files: a restart decides by what these are then"
		n.Remedy += "; with metadata.creationTimestamp in both the order is sure"
	}
	return n
}
