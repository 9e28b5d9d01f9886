package k8s

import (
	"errors"
	"maps"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// apiService is the Service of the API server.
var apiService = types.NamespacedName{Namespace: "default", Name: "kubernetes"}

// kubeletPorts are those on which a kubelet serves its node: with and without
// authentication.
var kubeletPorts = []uint16{10250, 10255}

// reserved are addresses of the cluster itself, which no endpoint may have: whoever
// may write an EndpointSlice must not reach them from this node's place.
type reserved struct {
	api   map[netip.AddrPort]bool
	nodes map[netip.Addr]bool
	ports map[uint16]bool // that are refused on nodes
}

// newReserved returns what is reserved by o and by the objects: the own Node, nil if
// unknown, and the slices of the API server's Service.
func newReserved(o Options, node *corev1.Node, api map[string]*discoveryv1.EndpointSlice) reserved {
	g := reserved{api: make(map[netip.AddrPort]bool), nodes: make(map[netip.Addr]bool), ports: make(map[uint16]bool)}
	for _, a := range o.APIServers {
		g.api[netip.AddrPortFrom(a.Addr().Unmap(), a.Port())] = true
	}
	for _, a := range o.NodeAddresses {
		g.nodes[a.Unmap()] = true
	}
	if node != nil {
		for _, a := range node.Status.Addresses {
			if addr, err := netip.ParseAddr(a.Address); err == nil { // others are names
				g.nodes[addr.Unmap()] = true
			}
		}
	}
	for _, s := range api {
		g.addAPI(s)
	}
	for _, p := range kubeletPorts {
		g.ports[p] = true
	}
	for _, p := range o.NodePorts {
		g.ports[p] = true
	}
	return g
}

// addAPI adds the endpoints of the API server's own Service. They are addresses of
// nodes too.
func (g *reserved) addAPI(s *discoveryv1.EndpointSlice) {
	for n := range s.Endpoints {
		for _, text := range s.Endpoints[n].Addresses {
			a, err := netip.ParseAddr(text)
			if err != nil {
				continue
			}
			g.nodes[a.Unmap()] = true
			for _, p := range s.Ports {
				if p.Port != nil {
					g.api[netip.AddrPortFrom(a.Unmap(), uint16(*p.Port))] = true
				}
			}
		}
	}
}

// check says why a may not be an endpoint, nil if it may.
func (g *reserved) check(a netip.AddrPort) error {
	switch {
	case g.api[a]:
		return errors.New("is the API server's, which an Ingress must not publish")
	case g.ports[a.Port()] && g.nodes[a.Addr()]:
		return errors.New("is a port of the node's own services (kubelet, Weir), which an Ingress must not publish")
	}
	return nil
}

func (g *reserved) same(h reserved) bool {
	return maps.Equal(g.api, h.api) && maps.Equal(g.nodes, h.nodes) && maps.Equal(g.ports, h.ports)
}
