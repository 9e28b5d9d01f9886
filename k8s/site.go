package k8s

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/l7/route"
)

// site is one host, and what was made of it.
type site struct {
	host   string
	claims []*ingress // those that claim it, by age
	owner  string     // namespace that it belongs to, if owned
	owned  bool

	built *built // nil: nothing yet
}

// built is what one build of a host brought. The lists have no duplicates.
type built struct {
	inForce  bool // somebody may have the host
	routes   []*route.Route
	def      *route.Route
	notices  []Notice
	stats    []*route.RouteStats
	clusters []*cluster
	services []types.NamespacedName // that it leads to
	admitted []types.NamespacedName
}

// scratch is memory for the build of one host after another: which paths are taken,
// and sets of what built lists.
type scratch struct {
	taken    map[pathKey]*route.Route
	stats    map[string]*route.RouteStats // by source
	clusters map[*cluster]bool
	services map[types.NamespacedName]bool
}

func newScratch() scratch {
	return scratch{make(map[pathKey]*route.Route), make(map[string]*route.RouteStats), make(map[*cluster]bool), make(map[types.NamespacedName]bool)}
}

func (s *scratch) clear() {
	clear(s.taken)
	clear(s.stats)
	clear(s.clusters)
	clear(s.services)
}

// site returns the host's, new if there is none yet.
func (t *Translator) site(host string) *site {
	s := t.sites[host]
	if s == nil {
		s = &site{host: host}
		t.sites[host] = s
		if wildcard := wildcardOf(host); wildcard != "" {
			add(t.below, wildcard, host)
		}
	}
	return s
}

// build makes a host's routes anew, notes what differs from before, and forgets
// the host if nobody claims it.
func (w *work) build(host string) {
	t := w.t
	s := t.site(host)
	old, next := s.built, new(built)
	if old == nil {
		old = new(built)
	}
	w.scratch.clear()
	b := &build{t: t, site: s, built: next, before: old, scratch: &w.scratch}
	b.run()
	w.take(host, old, next)
	s.built = next
	if len(s.claims) == 0 && !next.inForce {
		delete(t.sites, host)
		remove(t.below, wildcardOf(host), host)
	}
}

// take notes what next changes that is in the place of old. The scratch memory is
// that of next.
func (w *work) take(host string, old, next *built) {
	t := w.t
	w.notices.remove = append(w.notices.remove, old.notices...)
	w.notices.add = append(w.notices.add, next.notices...)
	w.stats.remove = append(w.stats.remove, old.stats...)
	w.stats.add = append(w.stats.add, next.stats...)
	for _, c := range next.clusters {
		if c.hosts++; !c.listed {
			c.listed = true
			w.clusters.add = append(w.clusters.add, c.Cluster)
		}
	}
	for _, c := range old.clusters {
		if c.hosts--; c.hosts == 0 {
			w.left = append(w.left, c)
		}
	}
	for _, key := range next.services {
		add(t.leading, key, host)
	}
	for _, key := range old.services {
		if !w.scratch.services[key] {
			remove(t.leading, key, host)
		}
	}
	w.admit(next.admitted, 1)
	w.admit(old.admitted, -1)
	switch {
	case !next.inForce:
		if old.inForce {
			w.removed = append(w.removed, host)
		}
	case old.inForce && old.same(next):
		next.routes, next.def = old.routes, old.def // they stay those of the table
	default:
		w.hosts = append(w.hosts, route.VirtualHost{Name: host, Routes: next.routes, Default: next.def})
	}
}

// admit counts a host more, or with sign -1 less, for each Ingress.
func (w *work) admit(list []types.NamespacedName, sign int) {
	for _, key := range list {
		before := w.t.admitted[key]
		w.t.admitted[key] = before + sign
		switch {
		case before == 0:
			w.admitted.add = append(w.admitted.add, key)
		case before+sign == 0:
			delete(w.t.admitted, key)
			w.admitted.remove = append(w.admitted.remove, key)
		}
	}
}

// same reports whether two builds route every request alike.
func (b *built) same(c *built) bool {
	same := func(x, y *route.Route) bool { return x == nil && y == nil || x != nil && y != nil && *x == *y }
	return same(b.def, c.def) && slices.EqualFunc(b.routes, c.routes, same)
}

// add and remove change a set in a map of sets, which holds no empty ones.
func add[K comparable](m map[K]map[string]bool, key K, value string) {
	if m[key] == nil {
		m[key] = make(map[string]bool)
	}
	m[key][value] = true
}

func remove[K comparable](m map[K]map[string]bool, key K, value string) {
	if delete(m[key], value); len(m[key]) == 0 {
		delete(m, key)
	}
}

// build is one build of a host.
type build struct {
	t *Translator
	*site
	*built
	before *built
	*scratch
}

func (b *build) run() {
	for _, i := range b.claims {
		if !b.allows(i) {
			b.notices = append(b.notices, b.t.refusal(i, b.site))
			continue
		}
		b.admit(i)
		b.addRules(i, false)
		if i.fallback != nil && b.def == nil && b.host != "" {
			b.def = b.route(i, "", route.Prefix, *i.fallback, false)
		}
	}
	// What a refused regular expression may mean never displaces a real rule.
	for _, i := range b.claims {
		if b.allows(i) {
			b.addRules(i, true)
		}
	}
	if b.host == "" {
		b.addCatchAll()
	}
}

// admit notes that i has the host.
func (b *build) admit(i *ingress) {
	b.inForce = true
	if !slices.Contains(b.admitted, i.key) {
		b.admitted = append(b.admitted, i.key)
	}
}

func (b *build) addRules(i *ingress, guesses bool) {
	for r := range i.rulesOf(b.host) {
		if r.guess != guesses {
			continue
		}
		key := keyOf(r.kind, r.path)
		if first := b.taken[key]; first != nil {
			if !r.guess {
				b.note(i, Info, r.field+".path", "PathAlreadyServed",
					fmt.Sprintf("%s %q of host %q is served by the older rule of %s: this one is on standby", r.kind, r.path, r.host, first.Source))
			}
			continue
		}
		made := b.route(i, r.path, r.kind, r.to, r.denied)
		b.taken[key] = made
		b.routes = append(b.routes, made)
	}
}

// addCatchAll chooses the default backend for what no rule matches: that of an
// Ingress without rules before that of one with rules, then the oldest; if
// anybody owns "any host", only from the owner's namespace.
func (b *build) addCatchAll() {
	var best *ingress
	for _, i := range b.t.fallbacks {
		if b.owned && !b.allows(i) {
			continue
		}
		bare := len(i.object.Spec.Rules) == 0
		switch {
		case best == nil, bare && len(best.object.Spec.Rules) != 0:
			best = i
		case bare:
			b.note(i, Info, "spec.defaultBackend", "DefaultAlreadyServed",
				fmt.Sprintf("the default backend is that of the older %s: this one is on standby", best.source))
		}
	}
	if best != nil {
		b.admit(best)
		b.def = b.route(best, "", route.Prefix, *best.fallback, false)
	}
}

func (b *build) route(i *ingress, path string, kind route.PathKind, to backend, denied bool) *route.Route {
	t := b.t
	if denied || i.denied || t.global.denied || t.global.auth && !i.noAuth {
		to.refused = true
	}
	c, problem := t.clusters.get(i.key.Namespace, to, t.services)
	if problem != "" {
		b.note(i, Warning, to.field, "NoBackend", problem+": requests answer 503")
	}
	if !b.scratch.clusters[c] {
		b.scratch.clusters[c] = true
		b.built.clusters = append(b.built.clusters, c)
	}
	if service := (types.NamespacedName{Namespace: i.key.Namespace, Name: to.service}); !to.refused && !b.scratch.services[service] {
		b.scratch.services[service] = true
		b.built.services = append(b.built.services, service)
	}
	return &route.Route{Host: b.host, Path: path, Kind: kind, Source: i.source, Cluster: c.Cluster, Policy: i.policy.Policy, Stats: b.count(i)}
}

// count returns the statistics of the routes that i has for the host, those from
// before if it had some.
func (b *build) count(i *ingress) *route.RouteStats {
	if s := b.scratch.stats[i.source]; s != nil {
		return s
	}
	var stats *route.RouteStats
	for _, s := range b.before.stats {
		if s.Source == i.source {
			stats = s
		}
	}
	if stats == nil {
		stats = route.NewRouteStats(b.host, i.source, b.t.options.Workers)
	}
	b.scratch.stats[i.source] = stats
	b.built.stats = append(b.built.stats, stats)
	return stats
}

func (b *build) note(i *ingress, s Severity, field, reason, message string) {
	b.notices = append(b.notices, Notice{Severity: s, Kind: "Ingress", Namespace: i.key.Namespace, Name: i.key.Name,
		Field: field, Reason: reason, Message: message}.advised())
}
