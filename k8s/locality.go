package k8s

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weirproxy/weir/l7/route"
)

// locality is where the agent runs.
type locality struct {
	node string // "" unknown
	zone string // "" unknown
}

// newLocality returns what o and the own Node, nil if unknown, tell.
func newLocality(o Options, node *corev1.Node) locality {
	p := locality{o.NodeName, o.Zone}
	if p.zone == "" && node != nil {
		p.zone = node.Labels[corev1.LabelTopologyZone]
	}
	return p
}

// preference says which endpoints a Service wants before others.
type preference struct {
	node    bool   // those on the same node
	zone    bool   // those in the same zone
	unknown string // a trafficDistribution that means nothing; "" none
}

// preferenceOf reads a Service, which may be nil. A Service whose
// internalTrafficPolicy is Local prefers its node and no more: other nodes serve
// what this one can't.
func preferenceOf(s *corev1.Service) (p preference) {
	if s == nil {
		return p
	}
	p.node = deref(s.Spec.InternalTrafficPolicy, "") == corev1.ServiceInternalTrafficPolicyLocal
	switch d := deref(s.Spec.TrafficDistribution, ""); d {
	case "":
	case corev1.ServiceTrafficDistributionPreferSameNode:
		p.node, p.zone = true, true
	case corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferClose:
		p.zone = true
	default:
		p.unknown = d
	}
	return p
}

// hint says whom the control plane wants to use an endpoint.
type hint uint8

const (
	unhinted hint = iota
	forUs
	forOthers
)

// hints are those of one endpoint.
type hints struct{ node, zone hint }

func (p locality) read(h *discoveryv1.EndpointHints) (out hints) {
	if h == nil {
		return out
	}
	for _, n := range h.ForNodes {
		out.node = better(out.node, n.Name == p.node)
	}
	for _, z := range h.ForZones {
		out.zone = better(out.zone, z.Name == p.zone)
	}
	return out
}

func better(h hint, ours bool) hint {
	if ours || h == forUs {
		return forUs
	}
	return forOthers
}

// tiers sorts endpoints by how near they are: on this node, in this zone, elsewhere.
//
// Hints of one kind count if every endpoint has one. Otherwise they are being
// written or withdrawn, and those that have some would get everything; then the
// endpoints' own nodes and zones decide, if the Service prefers them.
func (p locality) tiers(active []*state, want preference) [][]route.Endpoint {
	if len(active) == 0 {
		return nil
	}
	allNode, allZone := true, true
	for _, s := range active {
		allNode = allNode && s.hints.node != unhinted
		allZone = allZone && s.hints.zone != unhinted
	}
	tiers := make([][]route.Endpoint, 3)
	for _, s := range active {
		e, at := s.endpoint, 2
		switch {
		case p.node != "" && (allNode && s.hints.node == forUs || want.node && e.Local):
			at = 0
		case p.zone != "" && (allZone && s.hints.zone == forUs || want.zone && !allZone && e.Zone == p.zone):
			at = 1
		}
		tiers[at] = append(tiers[at], e)
	}
	return tiers
}

// noteLocality tells what keeps a Service from what it prefers.
func (c *cluster) noteLocality(p locality) {
	note := func(s Severity, reason, message, remedy string) {
		c.notices = append(c.notices, Notice{Severity: s, Kind: "Service", Namespace: c.service.Namespace, Name: c.service.Name,
			Field: "spec.trafficDistribution", Reason: reason, Message: message, Remedy: remedy})
	}
	w := c.prefers
	switch {
	case w.unknown != "":
		note(Warning, "UnknownDistribution", fmt.Sprintf("trafficDistribution %q is not known: no endpoint is preferred", w.unknown),
			"use PreferSameNode, PreferSameZone or PreferClose")
	case w.node && p.node == "":
		note(Info, "PlaceUnknown", "it prefers endpoints on the same node, but Weir does not know the name of its own", "set --node-name")
	case w.zone && p.zone == "":
		note(Info, "PlaceUnknown", "it prefers endpoints in the same zone, but Weir does not know its own",
			"set --zone, or label the Node "+corev1.LabelTopologyZone)
	}
}
