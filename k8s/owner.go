package k8s

import "fmt"

// claim is what an Ingress does by naming a host.
type claim struct{ host, namespace string }

// claims returns the hosts that i claims. An Ingress with nothing but a default
// backend claims every host that nobody names.
func (i *ingress) claims() []string {
	if len(i.object.Spec.Rules) == 0 && i.fallback != nil {
		return []string{""}
	}
	return i.hosts
}

// owners maps a host to the namespace that it belongs to.
type owners map[string]string

// claimHosts returns who owns which host, given who owned them before.
//
// An owner stays the owner as long as any of its Ingresses names the host, so a
// host that is served can't be taken by editing an older object. A free host
// goes to the oldest claim; list is sorted by age. An exact host under another
// namespace's wildcard is not free, unless it was there first.
func claimHosts(before owners, list []*ingress) owners {
	claimed := make(map[claim]bool, len(list))
	for _, i := range list {
		for _, host := range i.claims() {
			claimed[claim{host, i.key.Namespace}] = true
		}
	}
	now := make(owners, len(before))
	for host, namespace := range before {
		if claimed[claim{host, namespace}] {
			now[host] = namespace
		}
	}
	for _, i := range list {
		for _, host := range i.claims() {
			if _, taken := now[host]; taken {
				continue
			}
			if by, covered := now[wildcardOf(host)]; wildcardOf(host) != "" && covered && by != i.key.Namespace {
				continue
			}
			now[host] = i.key.Namespace
		}
	}
	return now
}

// allows reports whether namespace may add routes to host; nil owners allow all.
func (o owners) allows(host, namespace string) bool { return o == nil || o[host] == namespace }

// refusal returns the notice for i of list, which may not have host.
func (b *build) refusal(i *ingress, host string, list []*ingress) Notice {
	n := Notice{
		Severity: Error, Kind: "Ingress", Namespace: i.key.Namespace, Name: i.key.Name,
		Field: "spec.rules", Reason: "HostAlreadyClaimed",
		Remedy: "use another host, or move the Ingress to the namespace that owns it",
	}
	won := host
	by, ok := b.owners[host]
	switch {
	case host == "":
		n.Message = fmt.Sprintf("rules without host belong to namespace %q, which claimed them first: they are left out", by)
	case ok:
		n.Message = fmt.Sprintf("host %q belongs to namespace %q, which claimed it first: its rules are left out", host, by)
	default:
		won = wildcardOf(host)
		by = b.owners[won]
		n.Message = fmt.Sprintf("host %q is covered by %q of namespace %q, which was claimed first: its rules are left out", host, won, by)
	}
	if b.oldest == nil {
		b.oldest = oldestClaims(list)
	}
	if owner := b.oldest[claim{won, by}]; i.undated || owner != nil && owner.undated {
		n.Message += ". Which was first is told by the times of their files: a restart decides by what these are then"
		n.Remedy += "; with metadata.creationTimestamp in both the order is sure"
	}
	return n
}

// oldestClaims returns the first of list, which is sorted by age, that makes
// each claim.
func oldestClaims(list []*ingress) map[claim]*ingress {
	oldest := make(map[claim]*ingress)
	for _, i := range list {
		for _, host := range i.claims() {
			if c := (claim{host, i.key.Namespace}); oldest[c] == nil {
				oldest[c] = i
			}
		}
	}
	return oldest
}
