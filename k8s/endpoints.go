package k8s

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weirproxy/weir/l7/route"
)

// surroundings are what endpoints are seen from: this node, and what it knows.
type surroundings struct {
	locality
	loopback bool // endpoints on loopback addresses are used
	reserved reserved
	lost     func(netip.Addr) uint64 // nil: nothing is known to be lost
	judged   judged
}

// refresh sets the endpoints of c from the slices and reports a change.
func (x *sliceIndex) refresh(c *cluster, from *surroundings) bool {
	c.notices, c.stale = nil, false
	if !c.known {
		from.judged.set(c, nil)
		return c.SetEndpoints(route.Listing{})
	}
	named := x.byService[c.service]
	count := 0
	for _, s := range named {
		count += len(s.Endpoints)
	}
	all := merged{make(map[netip.AddrPort]int, count), make([]state, 0, count), from.locality}
	ports := 0
	for _, name := range slices.Sorted(maps.Keys(named)) {
		ports += c.merge(named[name], &all, from)
	}
	if ports > 0 {
		c.heir = nil
	}
	if len(named) == 0 {
		c.notices = append(c.notices, Notice{Severity: Warning, Kind: "Service", Namespace: c.service.Namespace, Name: c.service.Name,
			Reason: "NoEndpointSlice", Message: "it has no EndpointSlice: requests answer 503 until there is one",
			Remedy: "give an EndpointSlice the label " + discoveryv1.LabelServiceName + ": " + c.service.Name})
	} else if ports == 0 {
		effect := "requests answer 503"
		if held := x.hold(c, &all, from); held > 0 {
			effect = fmt.Sprintf("%d endpoints from before stay in use", held)
		}
		c.notices = append(c.notices, Notice{Severity: Warning, Kind: "Service", Namespace: c.service.Namespace, Name: c.service.Name,
			Field: "spec.ports", Reason: "NoSlicePort",
			Message: fmt.Sprintf("none of its EndpointSlices has a TCP port named %q: %s", c.port, effect),
			Remedy:  "name the port alike in the Service and in its EndpointSlices"})
	}
	c.noteLocality(from.locality)
	from.judged.set(c, c.findLost(all.list, from))
	return c.SetEndpoints(all.split(c.prefers))
}

// hold adds to all the endpoints of c in force whose addresses the slices still
// list, and returns their number. When a port of a Service is renamed, or another
// one for the same pods comes, its slices follow some time later, or are heard of
// first: the pods are the same.
func (x *sliceIndex) hold(c *cluster, all *merged, from *surroundings) (held int) {
	before := make(map[string]netip.AddrPort)
	set := c.Endpoints()
	if c.heir != nil {
		set = c.heir.Endpoints()
	}
	for _, e := range slices.Concat(set.Active, set.Draining, set.Lost) {
		if from.reserved.check(e.Addr) == nil {
			before[e.Addr.Addr().String()] = e.Addr
		}
	}
	for _, s := range x.byService[c.service] {
		for n := range s.Endpoints {
			for _, text := range s.Endpoints[n].Addresses {
				if at, ok := before[text]; ok {
					all.add(at, &s.Endpoints[n])
				}
			}
		}
	}
	return len(all.list)
}

// merge adds what s lists for the cluster's port and returns the number of ports
// of that name.
func (c *cluster) merge(s *discoveryv1.EndpointSlice, into *merged, from *surroundings) (ports int) {
	note := func(severity Severity, field, reason, message string) {
		c.notices = append(c.notices, Notice{Severity: severity, Kind: "EndpointSlice", Namespace: s.Namespace, Name: s.Name,
			Field: field, Reason: reason, Message: message}.advised())
	}
	if s.AddressType != discoveryv1.AddressTypeIPv4 && s.AddressType != discoveryv1.AddressTypeIPv6 {
		note(Error, "addressType", "InvalidAddressType",
			fmt.Sprintf("addressType %q is not IPv4 or IPv6: the slice is left out", s.AddressType))
		return 1 // said; that no port fits would be a second complaint
	}
	for _, p := range s.Ports {
		if deref(p.Name, "") != c.port || deref(p.Protocol, corev1.ProtocolTCP) != corev1.ProtocolTCP {
			continue
		}
		ports++
		if p.Port == nil || *p.Port < 1 || *p.Port > 65535 {
			note(Error, "ports", "InvalidPort", fmt.Sprintf("port %q has no number from 1 to 65535: it is left out", c.port))
			continue
		}
		for n := range s.Endpoints {
			e := &s.Endpoints[n]
			for _, text := range e.Addresses {
				addr, err := endpointAddr(text, s.AddressType, from.loopback)
				if err != nil {
					note(Error, fmt.Sprintf("endpoints[%d].addresses", n), "InvalidAddress", fmt.Sprintf("address %q %v: it is left out", text, err))
					continue
				}
				at := netip.AddrPortFrom(addr, uint16(*p.Port))
				if err := from.reserved.check(at); err != nil {
					note(Error, fmt.Sprintf("endpoints[%d].addresses", n), "RefusedAddress", fmt.Sprintf("%s %v: it is left out", at, err))
					continue
				}
				into.add(at, e)
			}
		}
	}
	return ports
}

// endpointAddr parses text and says why the address may not be an endpoint:
// who may write an EndpointSlice must not reach what only this node can reach.
func endpointAddr(text string, kind discoveryv1.AddressType, loopback bool) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return a, fmt.Errorf("is not an IP address")
	}
	if a.Is4() != (kind == discoveryv1.AddressTypeIPv4) {
		return a, fmt.Errorf("is not of the slice's addressType %s", kind)
	}
	a = a.Unmap()
	switch {
	case a.IsUnspecified():
		return a, fmt.Errorf("is unspecified")
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return a, fmt.Errorf("is not the address of one host")
	case a.IsLinkLocalUnicast():
		return a, fmt.Errorf("is link-local")
	case a.IsLoopback() && !loopback:
		return a, fmt.Errorf("is a loopback address")
	case a.Is4() && a.As4()[0] == 0:
		return a, fmt.Errorf("is in 0.0.0.0/8, which means this host")
	}
	return a, nil
}

func deref[T any](p *T, none T) T {
	if p == nil {
		return none
	}
	return *p
}
