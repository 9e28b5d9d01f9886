package k8s

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

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

	// What no endpoint may be, besides loopback, link-local and the like: the API
	// servers, and on the node's addresses the kubelet's ports and NodePorts.
	APIServers    []netip.AddrPort
	NodeAddresses []netip.Addr
	NodePorts     []uint16
}

// Result is what one Apply changed and what is in force after it.
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
	// force, on standby or not, sorted. Read only.
	Admitted []types.NamespacedName

	// What the table in force counts in, sorted by name. Those that a new table
	// does not use any more are not listed: they live on only as long as a
	// request still holds their route, and start from zero if they come back.
	// Read only.
	RouteStats  []*route.RouteStats
	ClusterList []*route.Cluster
}

// Translator turns sets of objects into tables. It keeps clusters, statistics
// and the owners of hosts from one Apply to the next. One goroutine at a time
// may use it.
type Translator struct {
	options Options

	// What the last Apply saw.
	ingresses map[types.NamespacedName]*networkingv1.Ingress
	classes   map[string]*networkingv1.IngressClass
	services  map[types.NamespacedName]*corev1.Service
	configMap *corev1.ConfigMap
	slices    *sliceIndex
	node      *corev1.Node
	reserved  reserved

	// What it made of it.
	read     map[types.NamespacedName]*ingress
	known    spelling
	owners   owners
	clusters clusters
	stats    map[statsKey]*route.RouteStats
	policies map[string]*route.Policy
	hosts    []route.VirtualHost
	base     []Notice          // those that don't come from endpoints, sorted
	noted    map[*cluster]bool // those whose endpoints have notices
	origin   map[ref]position  // of the last set
	last     Result            // without what the last change did
	version  uint64            // of the last table, 0 = none yet
}

// NewTranslator returns a translator that has seen nothing yet.
func NewTranslator(o Options) *Translator {
	o.Workers = max(o.Workers, 1)
	return &Translator{options: o, slices: newSliceIndex(), clusters: clusters{workers: o.Workers}, noted: make(map[*cluster]bool)}
}

// Apply brings clusters in step with o at once and returns a new table if
// routing changed.
//
// Objects are compared by pointer: where only EndpointSlices differ from the last
// call, only the clusters concerned are touched. The first call always returns a
// table.
func (t *Translator) Apply(o *Objects) Result {
	changed := t.slices.update(o.EndpointSlices)
	moved := !maps.Equal(t.origin, o.origin)
	t.origin = o.origin
	t.node = o.Node
	t.keepReserved()
	var table *route.Table
	rebuild := t.version == 0 || !t.sameRouting(o)
	if rebuild {
		table = t.rebuild(o)
	}
	return t.follow(table, t.clusters.stale(), changed, rebuild || moved)
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
	if changed[apiService] && t.keepReserved() {
		stale = t.clusters.stale()
	}
	return t.follow(nil, stale, changed, false)
}

// keepReserved brings what is reserved in step and reports whether it changed: then every
// cluster is stale.
func (t *Translator) keepReserved() bool {
	g := newReserved(t.options, t.node, t.slices.byService[apiService])
	if g.same(t.reserved) {
		return false
	}
	t.reserved = g
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
		if t.slices.refresh(c, t.options.AllowLoopback, &t.reserved) {
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

// sameRouting reports whether o has the objects that routing depends on
// unchanged.
func (t *Translator) sameRouting(o *Objects) bool {
	return t.configMap == t.findConfigMap(o) &&
		maps.Equal(t.ingresses, o.Ingresses) && maps.Equal(t.classes, o.IngressClasses) && maps.Equal(t.services, o.Services)
}

func (t *Translator) findConfigMap(o *Objects) *corev1.ConfigMap {
	namespace, name, _ := strings.Cut(t.options.ConfigMap, "/")
	return o.ConfigMaps[types.NamespacedName{Namespace: namespace, Name: name}]
}

// rebuild translates everything but endpoints. It returns nil if the table in
// force routes alike.
func (t *Translator) rebuild(o *Objects) *route.Table {
	m := t.findConfigMap(o)
	if m != t.configMap {
		t.policies = nil // they are made of it
	}
	t.configMap = m
	t.ingresses, t.classes, t.services = maps.Clone(o.Ingresses), maps.Clone(o.IngressClasses), maps.Clone(o.Services)

	b := &build{
		t: t, services: t.services, global: readGlobal(m),
		clusters: make(map[string]*cluster), stats: make(map[statsKey]*route.RouteStats),
		policies: make(map[string]*route.Policy), hosts: make(map[string]*virtualHost),
		admitted: make(map[types.NamespacedName]bool, len(o.Ingresses)),
	}
	b.notices = append(b.notices, b.global.notices...)
	if t.options.ConfigMap != "" && m == nil {
		namespace, name, _ := strings.Cut(t.options.ConfigMap, "/")
		b.notices = append(b.notices, Notice{Severity: Warning, Kind: "ConfigMap", Namespace: namespace, Name: name,
			Reason: "NoConfigMap", Message: "the ConfigMap of global settings does not exist: the defaults hold"})
	}
	list, notices := t.choose(o)
	b.notices = append(b.notices, notices...)
	if !t.options.SharedHosts {
		t.owners = claimHosts(t.owners, list)
		b.owners = t.owners
	}
	b.run(list)
	return t.install(b, len(list))
}

// install puts b in force and returns its table, nil if nothing differs.
func (t *Translator) install(b *build, ingresses int) *route.Table {
	hosts := b.virtualHosts()
	var table *route.Table
	if t.version == 0 || !sameHosts(t.hosts, hosts) {
		var err error
		if table, err = route.NewTable(t.version+1, hosts); err != nil {
			// Every value was checked, so this is a fault of ours.
			panic(fmt.Sprintf("k8s: translated objects make no table: %v", err))
		}
		t.version++
		t.hosts = hosts
	}
	t.clusters.install(b.clusters)
	t.stats, t.policies = b.stats, b.policies
	t.base = sortNotices(b.notices)
	maps.DeleteFunc(t.noted, func(c *cluster, _ bool) bool { return t.clusters.byName[c.Name] != c })
	t.last = Result{Ingresses: ingresses, Hosts: len(hosts), Clusters: len(b.clusters), Notices: t.last.Notices}
	for _, h := range hosts {
		t.last.Routes += len(h.Routes)
		if h.Default != nil {
			t.last.Routes++
		}
	}
	t.last.Admitted = slices.SortedFunc(maps.Keys(b.admitted), compareNames)
	t.last.ClusterList = t.clusters.list()
	t.last.RouteStats = slices.SortedFunc(maps.Values(b.stats), func(a, b *route.RouteStats) int {
		if c := strings.Compare(a.Host, b.Host); c != 0 {
			return c
		}
		return strings.Compare(a.Source, b.Source)
	})
	return table
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

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
