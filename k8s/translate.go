package k8s

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/l7/route"
)

// work is one translation of what changed.
type work struct {
	t     *Translator
	dirty map[string]bool // hosts to be built anew

	// What the translation changes in lists of the result.
	notices  edit[Notice]
	stats    edit[*route.RouteStats]
	clusters edit[*route.Cluster]
	admitted edit[types.NamespacedName]
	hosts    []route.VirtualHost // new or routing otherwise than before
	removed  []string            // hosts that are gone
	left     []*cluster          // that a host does not lead to any more
	forgot   bool                // a cluster that had notices
	scratch  scratch
}

// translate brings everything but endpoints in step with o. It returns nil if the
// table in force routes alike, and whether notices changed.
func (t *Translator) translate(o *Objects) (table *route.Table, noticed bool) {
	w := &work{t: t, dirty: make(map[string]bool), scratch: newScratch()}
	w.compareGlobal(o)
	w.compareServices(o)
	w.compareIngresses(o)
	if len(w.dirty) > 0 {
		w.claimHosts()
		for _, host := range slices.Sorted(maps.Keys(w.dirty)) {
			w.build(host)
		}
	}
	table = w.install()
	return table, w.forgot || !w.notices.empty()
}

// install puts what was built in force and returns the new table, nil if nothing
// differs.
func (w *work) install() *route.Table {
	t := w.t
	for _, c := range w.left {
		if c.hosts == 0 && c.listed {
			c.listed = false
			t.clusters.drop(c)
			t.from.judged.set(c, nil)
			delete(t.noted, c)
			w.clusters.remove = append(w.clusters.remove, c.Cluster)
			w.forgot = w.forgot || len(c.notices) != 0
		}
	}
	t.base = w.notices.apply(t.base, compareNotices)
	r := &t.last
	r.RouteStats = w.stats.apply(r.RouteStats, compareStats)
	r.ClusterList = w.clusters.apply(r.ClusterList, func(a, b *route.Cluster) int { return strings.Compare(a.Name, b.Name) })
	r.Admitted = w.admitted.apply(r.Admitted, compareNames)
	r.Clusters = len(t.clusters.byName)
	if t.table != nil && len(w.hosts)+len(w.removed) == 0 {
		return nil
	}
	var err error
	if t.table == nil {
		t.table, err = route.NewTable(1, w.hosts)
	} else {
		t.table, err = t.table.Replace(t.table.Version+1, w.hosts, w.removed)
	}
	if err != nil {
		// Every value was checked, so this is a fault of ours.
		panic(fmt.Sprintf("k8s: translated objects make no table: %v", err))
	}
	r.Hosts, r.Routes = len(t.table.Hosts()), t.table.Routes()
	return t.table
}

// compareGlobal takes over the ConfigMap. All hosts depend on it.
func (w *work) compareGlobal(o *Objects) {
	t := w.t
	m := t.findConfigMap(o)
	if t.table != nil && m == t.configMap {
		return
	}
	w.notices.remove = append(w.notices.remove, t.ofGlobal...)
	t.configMap, t.global = m, readGlobal(m)
	t.ofGlobal = t.global.notices
	if t.options.ConfigMap != "" && m == nil {
		namespace, name, _ := strings.Cut(t.options.ConfigMap, "/")
		t.ofGlobal = []Notice{Notice{Severity: Warning, Kind: "ConfigMap", Namespace: namespace, Name: name,
			Reason: "NoConfigMap", Message: "the ConfigMap of global settings does not exist: the defaults hold"}.advised()}
	}
	w.notices.add = append(w.notices.add, t.ofGlobal...)
	t.policies.reset(t.global.defaults)
	for host := range t.sites {
		w.dirty[host] = true
	}
}

func (t *Translator) findConfigMap(o *Objects) *corev1.ConfigMap {
	namespace, name, _ := strings.Cut(t.options.ConfigMap, "/")
	return o.ConfigMaps[types.NamespacedName{Namespace: namespace, Name: name}]
}

// compareServices takes over the Services.
func (w *work) compareServices(o *Objects) {
	t := w.t
	for key := range candidates(o.Services, t.services, o.Edits, func(e *Edits) map[types.NamespacedName]bool { return e.Services }) {
		s := o.Services[key]
		if t.services[key] == s {
			continue
		}
		w.touch(key)
		if t.services[key] = s; s == nil {
			delete(t.services, key)
		}
	}
}

// touch makes the hosts dirty that lead to a Service.
func (w *work) touch(service types.NamespacedName) {
	for host := range w.t.leading[service] {
		w.dirty[host] = true
	}
}

// candidates yields the names that may stand for different objects in now and
// before: those of edits, or else all. before may be edited meanwhile.
func candidates[T, U any](now map[types.NamespacedName]T, before map[types.NamespacedName]U, edits *Edits,
	of func(*Edits) map[types.NamespacedName]bool) iter.Seq[types.NamespacedName] {
	if edits != nil {
		return maps.Keys(of(edits))
	}
	return func(yield func(types.NamespacedName) bool) {
		for key := range now {
			if !yield(key) {
				return
			}
		}
		for key := range before {
			if _, ok := now[key]; !ok && !yield(key) {
				return
			}
		}
	}
}

func compareStats(a, b *route.RouteStats) int {
	return cmp.Or(strings.Compare(a.Host, b.Host), strings.Compare(a.Source, b.Source))
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
