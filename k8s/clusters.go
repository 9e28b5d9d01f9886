package k8s

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weirproxy/weir/l7/route"
)

// cluster is a route.Cluster and where its endpoints come from.
type cluster struct {
	*route.Cluster
	service types.NamespacedName
	port    string             // name of the Service's port, which the slices use too
	target  intstr.IntOrString // port of the pods that the Service's port stands for
	heir    *cluster           // of the same pods by another port of the Service, until slices name this one
	known   bool               // Service and port exist; without, it has no endpoints
	prefers preference
	stale   bool                      // its endpoints are still those of other sources
	excused map[netip.AddrPort]uint64 // losses that its slices have overruled
	judged  []netip.Addr              // under which it is found
	notices []Notice
	hosts   int  // that lead to it
	listed  bool // it is in the result's list
}

// refusedCluster is the name of the cluster without endpoints that routes lead
// to which can't be served as they are meant.
const refusedCluster = "refused"

// clusters keeps those in force.
type clusters struct {
	workers   int
	byName    map[string]*cluster
	byService map[types.NamespacedName][]*cluster
}

func newClusters(workers int) clusters {
	return clusters{workers, make(map[string]*cluster), make(map[types.NamespacedName][]*cluster)}
}

// get returns the cluster of b in namespace, new or from before. problem says why it
// has no endpoints, if it can't have any.
func (c *clusters) get(namespace string, b backend, services map[types.NamespacedName]*corev1.Service) (_ *cluster, problem string) {
	if b.refused {
		return c.named(refusedCluster, types.NamespacedName{}), ""
	}
	key := types.NamespacedName{Namespace: namespace, Name: b.service}
	port, problem := findPort(services[key], b)
	label := b.name
	number := b.number
	if problem == "" {
		number = port.Port
		// Of two ports with one number the first is called by it.
		if first, _ := findPort(services[key], backend{service: b.service, number: number}); first.Name == port.Name {
			label = ""
		}
	}
	if label == "" {
		label = strconv.Itoa(int(number)) // never a port's name: that has a letter
	}
	k := c.named(namespace+"/"+b.service+":"+label, key)
	known, prefers := problem == "", preferenceOf(services[key])
	if known {
		k.target = targetOf(port)
		c.inherit(k)
	}
	if k.known != known || k.port != port.Name || k.prefers != prefers {
		k.known, k.port, k.prefers, k.stale = known, port.Name, prefers, true
	}
	return k, problem
}

func (c *clusters) named(name string, service types.NamespacedName) *cluster {
	k := c.byName[name]
	if k == nil {
		k = &cluster{Cluster: route.NewCluster(name, c.workers), service: service, stale: true}
		c.byName[name] = k
		if name != refusedCluster {
			c.byService[service] = append(c.byService[service], k)
		}
	}
	return k
}

// targetOf returns the port of the pods behind a Service's port.
func targetOf(port corev1.ServicePort) intstr.IntOrString {
	if port.TargetPort == (intstr.IntOrString{}) {
		return intstr.FromInt32(port.Port)
	}
	return port.TargetPort
}

// inherit finds a cluster of the same pods for k, which is new: when an Ingress goes
// over to another port of a Service, slices may name that port some time later.
func (c *clusters) inherit(k *cluster) {
	if k.Endpoints().Version > 1 || k.heir != nil {
		return
	}
	for _, other := range c.byService[k.service] {
		if other != k && other.known && other.target == k.target {
			k.heir = other
			return
		}
	}
}

// drop forgets a cluster.
func (c *clusters) drop(k *cluster) {
	delete(c.byName, k.Name)
	rest := slices.DeleteFunc(c.byService[k.service], func(x *cluster) bool { return x == k })
	if c.byService[k.service] = rest; len(rest) == 0 {
		delete(c.byService, k.service)
	}
}

// stale returns the clusters whose endpoints come from elsewhere since they were
// last refreshed.
func (c *clusters) stale() (list []*cluster) {
	for _, k := range c.byName {
		if k.stale {
			list = append(list, k)
		}
	}
	return list
}

// findPort returns the port of s that b names. problem is not "" if there is
// none that can be used.
func findPort(s *corev1.Service, b backend) (port corev1.ServicePort, problem string) {
	if s == nil {
		return port, fmt.Sprintf("Service %q does not exist", b.service)
	}
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return port, fmt.Sprintf("Service %q is of type ExternalName, which is refused: it could lead anywhere", b.service)
	}
	udp := false
	for _, p := range s.Spec.Ports {
		if b.name != "" && p.Name != b.name || b.name == "" && p.Port != b.number {
			continue
		}
		if p.Protocol == "" || p.Protocol == corev1.ProtocolTCP {
			return p, ""
		}
		udp = true
	}
	want := b.name
	if want == "" {
		want = fmt.Sprint(b.number)
	}
	if udp {
		return port, fmt.Sprintf("port %s of Service %q is not TCP", want, b.service)
	}
	return port, fmt.Sprintf("Service %q has no port %s", b.service, want)
}
