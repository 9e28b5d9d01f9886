package rig

import (
	"fmt"
	"net/netip"
	"strings"
)

// Object is a Kubernetes object as it stands in a manifest.
type Object map[string]any

// ClassName is the IngressClass of every Ingress made here, Controller its
// controller.
const (
	ClassName  = "edge"
	Controller = "example.test/edge"
)

// Nginx is the annotation prefix of ingress-nginx.
const Nginx = "nginx.ingress.kubernetes.io/"

func object(version, kind, ns, name string) Object {
	meta := map[string]any{"name": name}
	if ns != "" {
		meta["namespace"] = ns
	}
	return Object{"apiVersion": version, "kind": kind, "metadata": meta}
}

func (o Object) meta(key string) map[string]any {
	meta := o["metadata"].(map[string]any)
	if meta[key] == nil {
		meta[key] = map[string]any{}
	}
	return meta[key].(map[string]any)
}

// Annotate sets an annotation; name comes with its prefix.
func (o Object) Annotate(name, value string) Object {
	o.meta("annotations")[name] = value
	return o
}

// Age sets the creation time to n seconds after an arbitrary moment: objects
// with a smaller n are older.
func (o Object) Age(n int) Object {
	o["metadata"].(map[string]any)["creationTimestamp"] = fmt.Sprintf("2025-01-01T%02d:%02d:%02dZ", n/3600, n/60%60, n%60)
	return o
}

// Class returns IngressClass edge.
func Class() Object {
	o := object("networking.k8s.io/v1", "IngressClass", "", ClassName)
	o["spec"] = map[string]any{"controller": Controller}
	return o
}

// Port is a port of a Service. Target is a number or a name.
type Port struct {
	Name   string
	Number int
	Target any
}

// Service returns a ClusterIP Service; without ports it has port 80.
func Service(ns, name string, ports ...Port) Object {
	if len(ports) == 0 {
		ports = []Port{{Number: 80, Target: 8080}}
	}
	list := make([]any, len(ports))
	for i, p := range ports {
		m := map[string]any{"port": p.Number, "targetPort": p.Target}
		if p.Name != "" {
			m["name"] = p.Name
		}
		list[i] = m
	}
	o := object("v1", "Service", ns, name)
	o["spec"] = map[string]any{"ports": list, "selector": map[string]any{"app": name}}
	return o
}

// Endpoint is one entry of a slice. Nil conditions are left out.
type Endpoint struct {
	IP                          string
	Ready, Serving, Terminating *bool
	Node                        string // "" unknown
}

// Ready returns endpoints that are ready, one for each address.
func Ready(ips ...string) []Endpoint {
	list := make([]Endpoint, len(ips))
	for i, ip := range ips {
		list[i] = Endpoint{IP: ip, Ready: new(true)}
	}
	return list
}

// Slice returns an EndpointSlice of service with one port, named portName.
func Slice(ns, name, service, portName string, port int, endpoints ...Endpoint) Object {
	family := "IPv4"
	list := make([]any, len(endpoints))
	for i, e := range endpoints {
		if strings.Contains(e.IP, ":") {
			family = "IPv6"
		}
		conditions := map[string]any{}
		for key, v := range map[string]*bool{"ready": e.Ready, "serving": e.Serving, "terminating": e.Terminating} {
			if v != nil {
				conditions[key] = *v
			}
		}
		entry := map[string]any{"addresses": []any{e.IP}, "conditions": conditions}
		if e.Node != "" {
			entry["nodeName"] = e.Node
		}
		list[i] = entry
	}
	o := object("discovery.k8s.io/v1", "EndpointSlice", ns, name)
	o.meta("labels")["kubernetes.io/service-name"] = service
	o["addressType"] = family
	o["endpoints"] = list
	o["ports"] = []any{map[string]any{"name": portName, "port": port, "protocol": "TCP"}}
	return o
}

// Svc returns Service name with port 80 and a slice whose ready endpoints are
// addrs; all of them must have the same port.
func Svc(ns, name string, addrs ...netip.AddrPort) []Object {
	port := 8080
	ips := make([]string, len(addrs))
	for i, a := range addrs {
		ips[i], port = a.Addr().String(), int(a.Port())
	}
	return []Object{Service(ns, name), Slice(ns, name+"-1", name, "", port, Ready(ips...)...)}
}

// Rule is one rule with one path.
type Rule struct {
	Host, Path, Type, Service string
	Port                      any // number or name, nil = 80
}

// R returns a rule that sends host and path to port 80 of service.
func R(host, path, kind, service string) Rule {
	return Rule{Host: host, Path: path, Type: kind, Service: service}
}

func backend(service string, port any) map[string]any {
	key := "number"
	switch port.(type) {
	case nil:
		port = 80
	case string:
		key = "name"
	}
	return map[string]any{"service": map[string]any{"name": service, "port": map[string]any{key: port}}}
}

// Ingress returns an Ingress of class edge.
func Ingress(ns, name string, rules ...Rule) Object {
	list := make([]any, len(rules))
	for i, r := range rules {
		path := map[string]any{"path": r.Path, "pathType": r.Type, "backend": backend(r.Service, r.Port)}
		rule := map[string]any{"http": map[string]any{"paths": []any{path}}}
		if r.Host != "" {
			rule["host"] = r.Host
		}
		list[i] = rule
	}
	o := object("networking.k8s.io/v1", "Ingress", ns, name)
	spec := map[string]any{"ingressClassName": ClassName}
	if len(list) != 0 {
		spec["rules"] = list
	}
	o["spec"] = spec
	return o
}

// Default sets the default backend of an Ingress.
func (o Object) Default(service string) Object {
	o["spec"].(map[string]any)["defaultBackend"] = backend(service, nil)
	return o
}
