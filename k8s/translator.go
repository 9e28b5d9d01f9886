package k8s

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
}

// Result is what one Apply changed and what is in force after it.
type Result struct {
	Table            *route.Table // nil if routing did not change
	EndpointsChanged int          // clusters whose endpoints were replaced
	Notices          []Notice     // all that are in force now, sorted. Read only

	Ingresses int // of our classes, canaries and those that lost all their hosts included
	Hosts     int // "any host" counts as one
	Routes    int // default backends included
	Clusters  int

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

	// What it made of it.
	read     map[types.NamespacedName]*ingress
	known    spelling
	owners   owners
	clusters clusters
	stats    map[statsKey]*route.RouteStats
	policies map[string]*route.Policy
	hosts    []route.VirtualHost
	base     []Notice // those that don't come from endpoints
	last     Result   // with neither Table nor EndpointsChanged
	version  uint64   // of the last table, 0 = none yet
}

// NewTranslator returns a translator that has seen nothing yet.
func NewTranslator(o Options) *Translator {
	o.Workers = max(o.Workers, 1)
	return &Translator{options: o, slices: newSliceIndex(), clusters: clusters{workers: o.Workers}}
}

// Apply brings clusters in step with o at once and returns a new table if
// routing changed.
//
// Objects are compared by pointer: where only EndpointSlices differ from the last
// call, only the clusters concerned are touched. The first call always returns a
// table.
func (t *Translator) Apply(o *Objects) Result {
	changed := t.slices.update(o.EndpointSlices)
	rebuild := t.version == 0 || !t.sameRouting(o)
	r := Result{}
	if rebuild {
		r.Table = t.rebuild(o)
	}
	notices := rebuild
	for _, c := range t.clusters.byName {
		if !c.stale && !changed[c.service] {
			continue
		}
		before := len(c.notices)
		if t.slices.refresh(c, t.options.AllowLoopback) {
			r.EndpointsChanged++
		}
		notices = notices || before+len(c.notices) != 0
	}
	if notices {
		t.last.Notices = t.collect(o)
	}
	table, endpoints := r.Table, r.EndpointsChanged
	r = t.last
	r.Table, r.EndpointsChanged = table, endpoints
	return r
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
	t.clusters.byName, t.stats, t.policies = b.clusters, b.stats, b.policies
	t.base = b.notices
	t.last = Result{Ingresses: ingresses, Hosts: len(hosts), Clusters: len(b.clusters)}
	for _, h := range hosts {
		t.last.Routes += len(h.Routes)
		if h.Default != nil {
			t.last.Routes++
		}
	}
	t.last.ClusterList = t.clusters.list()
	t.last.RouteStats = slices.SortedFunc(maps.Values(b.stats), func(a, b *route.RouteStats) int {
		if c := strings.Compare(a.Host, b.Host); c != 0 {
			return c
		}
		return strings.Compare(a.Source, b.Source)
	})
	return table
}

// collect returns all notices in force, with the places of their objects.
func (t *Translator) collect(o *Objects) []Notice {
	all := slices.Clone(t.base)
	for _, c := range t.clusters.byName {
		all = append(all, c.notices...)
	}
	for n := range all {
		o.locate(&all[n])
	}
	return sortNotices(all)
}
