// Package route decides which cluster serves a request.
//
// A Table is built whole by package k8s, then only read: any number of workers
// may call Match on it at the same time. The endpoints of a cluster sit behind
// their own atomic pointer, so a pod that comes or goes never rebuilds a table.
// The package imports the standard library only and does no I/O, so every rule
// can be tested with a literal.
package route

import (
	"fmt"
	"strings"
)

// PathKind says how a route's path is compared with a request's path.
type PathKind uint8

const (
	// Exact matches equal bytes only (Ingress API, pathType Exact).
	Exact PathKind = iota
	// Prefix matches whole segments: /ba matches /ba, /ba/ and /ba/x, never
	// /banana. A trailing slash in the rule is ignored (pathType Prefix).
	Prefix
)

func (k PathKind) String() string {
	if k == Exact {
		return "Exact"
	}
	return "Prefix"
}

// Route sends the requests of one rule to one cluster. It is immutable.
type Route struct {
	Host    string // as in the rule: exact, "*.suffix" or "" for any host
	Path    string // as in the rule; "" for a default backend
	Kind    PathKind
	Source  string // the object that it comes from: "namespace/name"
	Cluster *Cluster
	Policy  *Policy
	Stats   *RouteStats // never nil; survives table changes
}

// VirtualHost is what NewTable takes for one host: its routes in order of
// precedence (of two routes with equal kind and path the first one wins) and
// the route for everything else.
type VirtualHost struct {
	Name    string // lower case: "a.example", "*.example" (one label), "" = any
	Routes  []*Route
	Default *Route // nil: no default backend
}

// Table maps a host and a path to a Route. It is immutable.
type Table struct {
	// Version counts tables since the start of the agent; it never decreases.
	Version uint64

	exact    map[string]*host
	wildcard map[string]*host // "*.example" is stored under "example"
	any      *host
	hosts    []VirtualHost
	clusters map[*Cluster]int // routes that lead to each
	routes   int
}

// host is one virtual host, compiled.
type host struct {
	exact  map[string]*Route
	prefix node
	def    *Route
}

// node is a segment of the prefix tree: "/a/b" is root -> "a" -> "b".
type node struct {
	route *Route // the Prefix route that ends here, or nil
	next  map[string]*node
}

// NewTable compiles hosts. It fails on a name that occurs twice, an upper-case
// or malformed name, a route without cluster, policy or stats, and a path that
// does not start with '/': these are faults of the caller, not of an object.
func NewTable(version uint64, hosts []VirtualHost) (*Table, error) {
	t := &Table{
		Version:  version,
		exact:    make(map[string]*host, len(hosts)),
		wildcard: make(map[string]*host),
		hosts:    hosts,
		clusters: make(map[*Cluster]int),
	}
	for _, v := range hosts {
		if err := t.add(v); err != nil {
			return nil, fmt.Errorf("host %q: %w", v.Name, err)
		}
	}
	return t, nil
}

func (t *Table) place(name string, h *host) error {
	if name != strings.ToLower(name) {
		return fmt.Errorf("not lower case")
	}
	if name == "" {
		if t.any != nil {
			return fmt.Errorf("given twice")
		}
		t.any = h
		return nil
	}
	m, key := t.exact, name
	if suffix, ok := strings.CutPrefix(name, "*."); ok {
		m, key = t.wildcard, suffix
	}
	if key == "" || strings.ContainsAny(key, "*:/ ") {
		return fmt.Errorf("not a host name")
	}
	if m[key] != nil {
		return fmt.Errorf("given twice")
	}
	m[key] = h
	return nil
}

func compile(v VirtualHost) (*host, error) {
	h := &host{def: v.Default}
	if err := check(v.Default, true); err != nil {
		return nil, err
	}
	for _, r := range v.Routes {
		if err := check(r, false); err != nil {
			return nil, err
		}
		if r.Kind == Exact {
			if h.exact == nil {
				h.exact = make(map[string]*Route)
			}
			if h.exact[r.Path] == nil {
				h.exact[r.Path] = r
			}
			continue
		}
		n := &h.prefix
		for rest := strings.Trim(r.Path, "/"); rest != ""; {
			var segment string
			segment, rest, _ = strings.Cut(rest, "/")
			if n.next == nil {
				n.next = make(map[string]*node)
			}
			if n.next[segment] == nil {
				n.next[segment] = new(node)
			}
			n = n.next[segment]
		}
		if n.route == nil {
			n.route = r
		}
	}
	return h, nil
}

func check(r *Route, def bool) error {
	switch {
	case r == nil && def:
		return nil
	case r == nil:
		return fmt.Errorf("nil route")
	case r.Cluster == nil || r.Policy == nil || r.Stats == nil:
		return fmt.Errorf("route %q of %s lacks cluster, policy or stats", r.Path, r.Source)
	case !def && !strings.HasPrefix(r.Path, "/"):
		return fmt.Errorf("path %q of %s does not start with '/'", r.Path, r.Source)
	}
	return nil
}

// Hosts returns what the table was built from, for inspection. Read only.
func (t *Table) Hosts() []VirtualHost { return t.hosts }

// Uses reports whether a route of the table leads to c.
func (t *Table) Uses(c *Cluster) bool { return t.clusters[c] > 0 }

// Routes returns the number of routes, default backends included.
func (t *Table) Routes() int { return t.routes }
