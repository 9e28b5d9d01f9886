package k8s

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/l7/route"
)

// build is one translation of all Ingresses into virtual hosts.
type build struct {
	t        *Translator
	services map[types.NamespacedName]*corev1.Service
	global   global
	owners   owners

	clusters map[string]*cluster
	stats    map[statsKey]*route.RouteStats
	policies map[string]*route.Policy
	hosts    map[string]*virtualHost
	notices  []Notice
	admitted map[types.NamespacedName]bool
	oldest   map[claim]*ingress // the first to make each claim; nil until needed
}

type statsKey struct{ host, source string }

// virtualHost collects the routes of one host.
type virtualHost struct {
	routes []*route.Route
	taken  map[pathKey]*route.Route
	def    *route.Route
}

// run fills b from list, which is sorted by age.
func (b *build) run(list []*ingress) {
	for _, i := range list {
		b.notices = append(b.notices, i.notices...)
		if i.canary {
			continue
		}
		for _, host := range i.claims() {
			if b.owners.allows(host, i.key.Namespace) {
				b.host(host)
				b.admitted[i.key] = true
				continue
			}
			b.notices = append(b.notices, b.refusal(i, host, list))
		}
		b.addRules(i, false)
		b.addFallback(i)
	}
	// What a refused regular expression may mean never displaces a real rule.
	for _, i := range list {
		b.addRules(i, true)
	}
	b.addCatchAll(list)
}

func (b *build) host(name string) *virtualHost {
	h := b.hosts[name]
	if h == nil {
		h = &virtualHost{taken: make(map[pathKey]*route.Route)}
		b.hosts[name] = h
	}
	return h
}

func (b *build) addRules(i *ingress, guesses bool) {
	for n := range i.rules {
		r := &i.rules[n]
		if r.guess != guesses || !b.owners.allows(r.host, i.key.Namespace) {
			continue
		}
		h := b.host(r.host)
		key := keyOf(r.kind, r.path)
		if first := h.taken[key]; first != nil {
			if !r.guess {
				b.note(i, Info, r.field+".path", "PathAlreadyServed",
					fmt.Sprintf("%s %q of host %q is served by the older rule of %s: this one is on standby", r.kind, r.path, r.host, first.Source))
			}
			continue
		}
		made := b.route(i, r.host, r.path, r.kind, r.to, r.denied)
		h.taken[key] = made
		h.routes = append(h.routes, made)
	}
}

// addFallback makes i's default backend that of its hosts which have none yet.
func (b *build) addFallback(i *ingress) {
	if i.fallback == nil {
		return
	}
	for _, host := range i.hosts {
		if host == "" || !b.owners.allows(host, i.key.Namespace) {
			continue
		}
		if h := b.host(host); h.def == nil {
			h.def = b.route(i, host, "", route.Prefix, *i.fallback, false)
		}
	}
}

// addCatchAll chooses the default backend for what no rule matches: that of an
// Ingress without rules before that of one with rules, then the oldest; if
// anybody owns "any host", only from the owner's namespace.
func (b *build) addCatchAll(list []*ingress) {
	_, owned := b.owners[""]
	var best *ingress
	for _, i := range list {
		if i.canary || i.fallback == nil || owned && !b.owners.allows("", i.key.Namespace) {
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
		b.admitted[best.key] = true
		b.host("").def = b.route(best, "", "", route.Prefix, *best.fallback, false)
	}
}

func (b *build) route(i *ingress, host, path string, kind route.PathKind, to backend, denied bool) *route.Route {
	if denied || i.denied || b.global.denied || b.global.auth && !i.noAuth {
		to.refused = true
	}
	c, problem := b.t.clusters.get(b.clusters, i.key.Namespace, to, b.services)
	if problem != "" {
		b.note(i, Warning, to.field, "NoBackend", problem+": requests answer 503")
	}
	key := statsKey{host, i.source}
	stats := b.stats[key]
	if stats == nil {
		if stats = b.t.stats[key]; stats == nil {
			stats = route.NewRouteStats(host, i.source, b.t.options.Workers)
		}
		b.stats[key] = stats
	}
	return &route.Route{Host: host, Path: path, Kind: kind, Source: i.source, Cluster: c.Cluster, Policy: b.policy(i), Stats: stats}
}

// policy returns one policy for all Ingresses with the same overrides, the same
// as in the last build if nothing changed.
func (b *build) policy(i *ingress) *route.Policy {
	p := b.policies[i.settings]
	if p == nil {
		if p = b.t.policies[i.settings]; p == nil {
			p = b.global.defaults.with(i.overrides)
		}
		b.policies[i.settings] = p
	}
	return p
}

func (b *build) note(i *ingress, s Severity, field, reason, message string) {
	b.notices = append(b.notices, Notice{Severity: s, Kind: "Ingress", Namespace: i.key.Namespace, Name: i.key.Name,
		Field: field, Reason: reason, Message: message})
}

// virtualHosts returns the result, sorted by host.
func (b *build) virtualHosts() []route.VirtualHost {
	out := make([]route.VirtualHost, 0, len(b.hosts))
	for _, name := range slices.Sorted(maps.Keys(b.hosts)) {
		h := b.hosts[name]
		out = append(out, route.VirtualHost{Name: name, Routes: h.routes, Default: h.def})
	}
	return out
}

// sameHosts reports whether two translations route every request alike.
func sameHosts(a, b []route.VirtualHost) bool {
	same := func(x, y *route.Route) bool { return x == nil && y == nil || x != nil && y != nil && *x == *y }
	return slices.EqualFunc(a, b, func(x, y route.VirtualHost) bool {
		return x.Name == y.Name && same(x.Default, y.Default) && slices.EqualFunc(x.Routes, y.Routes, same)
	})
}

// byAge orders the oldest first.
func byAge(a, b *ingress) int {
	return cmp.Or(
		a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time),
		cmp.Compare(a.key.Namespace, b.key.Namespace),
		cmp.Compare(a.key.Name, b.key.Name),
	)
}
