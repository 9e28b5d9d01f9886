package k8s

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/l7/route"
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

// update takes over next and returns the Services whose slices changed.
func (x *sliceIndex) update(next map[types.NamespacedName]*discoveryv1.EndpointSlice) map[types.NamespacedName]bool {
	changed := make(map[types.NamespacedName]bool)
	for key, s := range next {
		if x.all[key] != s {
			x.replace(key, s, changed)
		}
	}
	if len(x.all) > len(next) {
		for key := range x.all {
			if next[key] == nil {
				x.remove(key, changed)
			}
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

// state is what the copies of one endpoint say together.
type state struct {
	endpoint route.Endpoint
	ready    bool // takes new requests
	serving  bool // terminates, but still serves
}

// merged are the endpoints of one cluster, each address once.
type merged struct {
	at   map[netip.AddrPort]int
	list []state
}

// refresh sets the endpoints of c from the slices and reports a change.
func (x *sliceIndex) refresh(c *cluster, loopback bool, g *reserved) bool {
	c.notices, c.stale = nil, false
	if !c.known {
		return c.SetEndpoints(nil, nil)
	}
	named := x.byService[c.service]
	count := 0
	for _, s := range named {
		count += len(s.Endpoints)
	}
	all := merged{make(map[netip.AddrPort]int, count), make([]state, 0, count)}
	ports := 0
	for _, name := range slices.Sorted(maps.Keys(named)) {
		ports += c.merge(named[name], &all, loopback, g)
	}
	if len(named) == 0 {
		c.notices = append(c.notices, Notice{Severity: Warning, Kind: "Service", Namespace: c.service.Namespace, Name: c.service.Name,
			Reason: "NoEndpointSlice", Message: "it has no EndpointSlice: requests answer 503 until there is one",
			Remedy: "give an EndpointSlice the label " + discoveryv1.LabelServiceName + ": " + c.service.Name})
	} else if ports == 0 {
		effect := "requests answer 503"
		if held := x.hold(c, &all, g); held > 0 {
			effect = fmt.Sprintf("%d endpoints from before stay in use", held)
		}
		c.notices = append(c.notices, Notice{Severity: Warning, Kind: "Service", Namespace: c.service.Namespace, Name: c.service.Name,
			Field: "spec.ports", Reason: "NoSlicePort",
			Message: fmt.Sprintf("none of its EndpointSlices has a TCP port named %q: %s", c.port, effect),
			Remedy:  "name the port alike in the Service and in its EndpointSlices"})
	}
	return c.SetEndpoints(all.split())
}

// hold adds to all the endpoints of c in force whose addresses the slices still
// list, and returns their number. When a port of a Service is renamed, its slices
// follow some time later, or are heard of first: the pods are the same.
func (x *sliceIndex) hold(c *cluster, all *merged, g *reserved) (held int) {
	listed := make(map[string]*discoveryv1.Endpoint)
	for _, s := range x.byService[c.service] {
		for n := range s.Endpoints {
			for _, text := range s.Endpoints[n].Addresses {
				listed[text] = &s.Endpoints[n]
			}
		}
	}
	set := c.Endpoints()
	for _, e := range slices.Concat(set.Active, set.Draining) {
		if now := listed[e.Addr.Addr().String()]; now != nil && g.check(e.Addr) == nil {
			all.add(e.Addr, now)
			held++
		}
	}
	return held
}

// split tells which endpoints take requests: the ready ones, or, if none is,
// those that terminate but still serve.
func (m *merged) split() (active, draining []route.Endpoint) {
	active = make([]route.Endpoint, 0, len(m.list))
	var serving []route.Endpoint
	for n := range m.list {
		switch s := &m.list[n]; {
		case s.ready:
			active = append(active, s.endpoint)
		case s.serving:
			serving = append(serving, s.endpoint)
		default:
			draining = append(draining, s.endpoint)
		}
	}
	if len(active) == 0 {
		return serving, draining
	}
	return active, append(draining, serving...)
}

// merge adds what s lists for the cluster's port and returns the number of ports
// of that name.
func (c *cluster) merge(s *discoveryv1.EndpointSlice, into *merged, loopback bool, g *reserved) (ports int) {
	note := func(severity Severity, field, reason, message string) {
		c.notices = append(c.notices, Notice{Severity: severity, Kind: "EndpointSlice", Namespace: s.Namespace, Name: s.Name,
			Field: field, Reason: reason, Message: message})
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
				addr, err := endpointAddr(text, s.AddressType, loopback)
				if err != nil {
					note(Error, fmt.Sprintf("endpoints[%d].addresses", n), "InvalidAddress", fmt.Sprintf("address %q %v: it is left out", text, err))
					continue
				}
				at := netip.AddrPortFrom(addr, uint16(*p.Port))
				if err := g.check(at); err != nil {
					note(Error, fmt.Sprintf("endpoints[%d].addresses", n), "RefusedAddress", fmt.Sprintf("%s %v: it is left out", at, err))
					continue
				}
				into.add(at, e)
			}
		}
	}
	return ports
}

// add adds one copy of an endpoint: ready if any copy is.
func (m *merged) add(addr netip.AddrPort, e *discoveryv1.Endpoint) {
	// The defaults are those of the EndpointSlice API.
	ready := deref(e.Conditions.Ready, true)
	serving := deref(e.Conditions.Serving, ready)
	terminating := deref(e.Conditions.Terminating, false)
	next := state{
		endpoint: route.Endpoint{Addr: addr, Node: deref(e.NodeName, ""), Zone: deref(e.Zone, "")},
		ready:    ready && !terminating,
		serving:  serving && terminating,
	}
	at, seen := m.at[addr]
	if !seen {
		m.at[addr] = len(m.list)
		m.list = append(m.list, next)
		return
	}
	s := &m.list[at]
	if rank(next) > rank(*s) {
		s.endpoint = next.endpoint
	}
	s.ready = s.ready || next.ready
	s.serving = s.serving || next.serving
}

func rank(s state) int {
	switch {
	case s.ready:
		return 2
	case s.serving:
		return 1
	}
	return 0
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
