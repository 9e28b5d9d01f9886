package k8s

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/l7/route"
)

// cluster is a route.Cluster and where its endpoints come from.
type cluster struct {
	*route.Cluster
	service types.NamespacedName
	port    string // name of the Service's port, which the slices use too
	known   bool   // Service and port exist; without, it has no endpoints
	stale   bool   // its endpoints are still those of other sources
	notices []Notice
}

// refusedCluster is the name of the cluster without endpoints that routes lead
// to which can't be served as they are meant.
const refusedCluster = "refused"

// clusters keeps those in force by name.
type clusters struct {
	workers   int
	byName    map[string]*cluster
	byService map[types.NamespacedName][]*cluster
}

// install puts the clusters of a build in force.
func (c *clusters) install(byName map[string]*cluster) {
	c.byName = byName
	c.byService = make(map[types.NamespacedName][]*cluster, len(byName))
	for _, k := range byName {
		c.byService[k.service] = append(c.byService[k.service], k)
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

// get returns the cluster of b in namespace, new or from before, and puts it
// into next. problem says why it has no endpoints, if it can't have any.
func (c *clusters) get(next map[string]*cluster, namespace string, b backend, services map[types.NamespacedName]*corev1.Service) (_ *cluster, problem string) {
	if b.refused {
		return c.named(next, refusedCluster), ""
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
	k := c.named(next, namespace+"/"+b.service+":"+label)
	if known := problem == ""; k.service != key || k.known != known || k.port != port.Name {
		k.service, k.known, k.port, k.stale = key, known, port.Name, true
	}
	return k, problem
}

func (c *clusters) named(next map[string]*cluster, name string) *cluster {
	k := next[name]
	if k == nil {
		if k = c.byName[name]; k == nil {
			k = &cluster{Cluster: route.NewCluster(name, c.workers)}
		}
		next[name] = k
	}
	return k
}

// list returns the clusters in force, sorted by name.
func (c *clusters) list() []*route.Cluster {
	out := make([]*route.Cluster, 0, len(c.byName))
	for _, name := range slices.Sorted(maps.Keys(c.byName)) {
		out = append(out, c.byName[name].Cluster)
	}
	return out
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
