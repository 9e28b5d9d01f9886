package k8s

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/l7/route"
)

// Options say which objects count and how they are read. The zero value serves
// the classes of DefaultControllers in all namespaces.
type Options struct {
	Workers           int      // shards of the statistics; 0 counts as 1
	ControllerClasses []string // empty: DefaultControllers
	IngressClass      string   // only the class of this name; "" = every class of the controllers
	WatchWithoutClass bool     // Ingresses without class are served if there is no default class
	WatchNamespaces   []string // empty: all
	ConfigMap         string   // "namespace/name" of the global settings; "" none
	SharedHosts       bool     // hosts don't belong to the namespace that claimed them first
	AllowLoopback     bool     // endpoints on loopback addresses are used
	NodeName          string   // the node that the agent runs on; "" unknown
	Zone              string   // its topology zone; "": that of the Node object

	// Lost returns the number of the loss of an address that this node knows to be cut
	// off, larger for a later one, and 0 for the others. nil: nothing is known.
	Lost func(netip.Addr) uint64

	// What no endpoint may be, besides loopback, link-local and the like: the API
	// servers, and on the node's addresses the kubelet's ports and NodePorts.
	APIServers    []netip.AddrPort
	NodeAddresses []netip.Addr
	NodePorts     []uint16
}

// Result is what one change did and what is in force after it.
type Result struct {
	Table            *route.Table // nil if routing did not change
	EndpointsChanged int          // clusters whose endpoints were replaced
	Notices          []Notice     // all that are in force now, sorted. Read only
	NoticesChanged   bool         // Notices are others than before

	Ingresses int // of our classes, canaries and those that lost all their hosts included
	Hosts     int // "any host" counts as one
	Routes    int // default backends included
	Clusters  int

	// Admitted are the Ingresses with at least one host or default backend in
	// force, standby or not, sorted. Read only.
	Admitted []types.NamespacedName

	// What the table in force counts in, sorted by name. Those that a new table
	// does not use any more are not listed: they live on only as long as a
	// request still holds their route, and start from zero if they come back.
	// Read only.
	RouteStats  []*route.RouteStats
	ClusterList []*route.Cluster
}

// Translator turns sets of objects into tables. What it made of an object stays
// until the object, or one that it depends on, changes: a change costs what it
// touches, and comparing the sets. One goroutine at a time may use it.
type Translator struct {
	options Options

	// What the last change left.
	ingresses map[types.NamespacedName]*member
	classes   map[string]*networkingv1.IngressClass
	class     *classes // reads classes
	services  map[types.NamespacedName]*corev1.Service
	configMap *corev1.ConfigMap
	slices    *sliceIndex
	node      *corev1.Node
	from      surroundings
	origin    map[ref]position

	// What it made of it.
	known     spelling
	global    global
	ofGlobal  []Notice // about the ConfigMap
	sites     map[string]*site
	below     map[string]map[string]bool               // hosts by the wildcard that covers them
	leading   map[types.NamespacedName]map[string]bool // hosts by the Services that they lead to
	fallbacks []*ingress                               // those with a default backend, by age
	policies  policies
	clusters  clusters
	admitted  map[types.NamespacedName]int // hosts in force of each Ingress
	base      []Notice                     // those that don't come from endpoints, sorted, maybe twice
	noted     map[*cluster]bool            // those whose endpoints have notices
	table     *route.Table                 // nil before the first
	last      Result                       // without what the last change did
}

// NewTranslator returns a translator that has seen nothing yet.
func NewTranslator(o Options) *Translator {
	o.Workers = max(o.Workers, 1)
	return &Translator{
		options: o, ingresses: make(map[types.NamespacedName]*member), services: make(map[types.NamespacedName]*corev1.Service), slices: newSliceIndex(),
		sites: make(map[string]*site), below: make(map[string]map[string]bool),
		leading:  make(map[types.NamespacedName]map[string]bool),
		policies: make(policies), clusters: newClusters(o.Workers),
		admitted: make(map[types.NamespacedName]int), noted: make(map[*cluster]bool),
		from: surroundings{loopback: o.AllowLoopback, lost: o.Lost, judged: make(judged)},
	}
}

// Apply brings clusters in step with o at once and returns a new table if
// routing changed.
//
// Objects are compared by pointer: only what depends on changed ones is translated
// anew. With Edits only these are compared; they must tell all that differs from the
// set of the last call. The first call always returns a table.
func (t *Translator) Apply(o *Objects) Result {
	changed := t.slices.update(o)
	moved := !maps.Equal(t.origin, o.origin)
	t.origin, t.node = o.origin, o.Node
	t.keepSurroundings()
	table, noticed := t.translate(o)
	return t.follow(table, t.clusters.stale(), changed, noticed || moved)
}

// ApplySlices brings clusters in step at once with EndpointSlices that changed
// since the last call of Apply or ApplySlices; nil is one that was deleted. It
// costs as much as the Services of these slices have endpoints, however many
// there are of both. Apply must have been called before.
func (t *Translator) ApplySlices(slices map[types.NamespacedName]*discoveryv1.EndpointSlice) Result {
	changed := make(map[types.NamespacedName]bool, 1)
	for key, s := range slices {
		t.slices.replace(key, s, changed)
	}
	var stale []*cluster
	if changed[apiService] && t.keepSurroundings() {
		stale = t.clusters.stale()
	}
	return t.follow(nil, stale, changed, false)
}

// keepSurroundings brings in step what all endpoints are seen from, and reports
// whether it changed: then every cluster is stale.
func (t *Translator) keepSurroundings() bool {
	g, p := newReserved(t.options, t.node, t.slices.byService[apiService]), newLocality(t.options, t.node)
	if g.same(t.from.reserved) && p == t.from.locality {
		return false
	}
	t.from.reserved, t.from.locality = g, p
	for _, c := range t.clusters.byName {
		c.stale = true
	}
	return true
}

// follow refreshes the clusters in stale and those of the Services in changed.
// notices says that they may differ even if those of clusters don't.
func (t *Translator) follow(table *route.Table, stale []*cluster, changed map[types.NamespacedName]bool, notices bool) Result {
	endpoints := 0
	refresh := func(c *cluster) {
		if t.slices.refresh(c, &t.from) {
			endpoints++
		}
		notices = notices || len(c.notices) != 0 || t.noted[c]
		if delete(t.noted, c); len(c.notices) != 0 {
			t.noted[c] = true
		}
	}
	for _, c := range stale {
		refresh(c)
	}
	for service := range changed {
		for _, c := range t.clusters.byService[service] {
			refresh(c)
		}
	}
	r := &t.last
	r.NoticesChanged = false
	if notices {
		all := t.collect()
		r.NoticesChanged = !slices.Equal(all, r.Notices)
		r.Notices = all
	}
	out := *r
	out.Table, out.EndpointsChanged = table, endpoints
	return out
}

// collect returns all notices in force, sorted, with the places of their objects.
func (t *Translator) collect() []Notice {
	var all []Notice
	for c := range t.noted {
		all = append(all, c.notices...)
	}
	all = mergeNotices(t.base, sortNotices(all))
	if len(t.origin) != 0 {
		for n := range all {
			locate(t.origin, &all[n])
		}
		all = sortNotices(all)
	}
	return all
}
