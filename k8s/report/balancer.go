package report

import (
	"cmp"
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
)

// balancerEntries returns addresses as the status of an Ingress has them: sorted,
// each once. What is neither an IP address nor a host name is left out.
func balancerEntries(addresses []string) []networkingv1.IngressLoadBalancerIngress {
	var out []networkingv1.IngressLoadBalancerIngress
	for _, a := range addresses {
		if CheckAddress(a) != nil {
			continue
		}
		if ip, err := netip.ParseAddr(a); err == nil {
			out = append(out, networkingv1.IngressLoadBalancerIngress{IP: ip.Unmap().String()})
		} else {
			out = append(out, networkingv1.IngressLoadBalancerIngress{Hostname: a})
		}
	}
	slices.SortFunc(out, compareEntries)
	return slices.CompactFunc(out, func(a, b networkingv1.IngressLoadBalancerIngress) bool { return compareEntries(a, b) == 0 })
}

func compareEntries(a, b networkingv1.IngressLoadBalancerIngress) int {
	return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(a.Hostname, b.Hostname))
}

// sameEntries reports whether a status says what want does, in whatever order.
// want is what balancerEntries returns.
func sameEntries(status, want []networkingv1.IngressLoadBalancerIngress) bool {
	if len(status) != len(want) {
		return false
	}
	status = slices.Clone(status)
	slices.SortFunc(status, compareEntries)
	return slices.EqualFunc(status, want, func(a, b networkingv1.IngressLoadBalancerIngress) bool {
		return compareEntries(a, b) == 0 && len(a.Ports) == len(b.Ports)
	})
}

// overlap reports whether a status has any entry of want.
func overlap(status, want []networkingv1.IngressLoadBalancerIngress) bool {
	return slices.ContainsFunc(status, func(a networkingv1.IngressLoadBalancerIngress) bool {
		return slices.ContainsFunc(want, func(b networkingv1.IngressLoadBalancerIngress) bool { return compareEntries(a, b) == 0 })
	})
}
