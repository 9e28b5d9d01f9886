package route

import "strings"

// Reason says why a route does or does not serve a request.
type Reason uint8

const (
	// Chosen: the route that Match returns.
	Chosen Reason = iota
	// OtherHost: the rule's host is not the request's.
	OtherHost
	// LessSpecificHost: the rule's host covers the request's, but a more specific
	// host is named by another rule and decides alone.
	LessSpecificHost
	// OtherPath: an Exact path that is not the request's.
	OtherPath
	// NotPrefix: no leading part of the path.
	NotPrefix
	// NotSegments: a leading part of the path's bytes, but not of its segments:
	// /ba and /banana.
	NotSegments
	// ExactFirst: a prefix of the path, but an Exact rule matches it too.
	ExactFirst
	// Shorter: a prefix of the path, but a longer one exists.
	Shorter
	// Standby: equal host, kind and path as a rule that comes before it.
	Standby
	// NotNeeded: a default backend, and a rule serves the path.
	NotNeeded
)

func (r Reason) String() string {
	return [...]string{
		"chosen", "other host", "less specific host", "other path", "not a prefix", "not a prefix by segments",
		"an exact rule matches", "shorter than the chosen prefix", "standby behind an equal rule", "default not needed",
	}[r]
}

// Candidate is one route of a table with the reason for its part in a decision.
type Candidate struct {
	Route  *Route
	Host   string // of the virtual host that lists it: "" = any
	Reason Reason
}

// Explanation tells how Match decides.
type Explanation struct {
	Route      *Route // what Match returns, perhaps nil
	Host       string // name of the virtual host that decides, "" = any
	HostFound  bool   // false: no rule and no default backend covers the host
	Candidates []Candidate
}

// Explain returns what Match returns for the same arguments, and for each route
// of the table why it was or was not chosen, in the table's order. It is not
// meant for the data path.
func (t *Table) Explain(hostname, path string) Explanation {
	e := Explanation{Route: t.Match(hostname, path)}
	decides := t.host(hostname)
	e.HostFound = decides != nil
	var equal map[*Route]bool
	if decides != nil {
		equal = decides.first()
	}
	for _, v := range t.hosts {
		mine := decides != nil && t.named(v.Name) == decides
		if mine {
			e.Host = v.Name
		}
		for _, r := range v.Routes {
			reason := OtherHost
			switch {
			case r == e.Route:
				reason = Chosen
			case mine && !equal[r]:
				reason = Standby
			case mine:
				reason = pathReason(r, e.Route, path)
			case covers(v.Name, hostname):
				reason = LessSpecificHost
			}
			e.Candidates = append(e.Candidates, Candidate{Route: r, Host: v.Name, Reason: reason})
		}
		if v.Default != nil {
			e.Candidates = append(e.Candidates, Candidate{v.Default, v.Name, t.defaultReason(v, e.Route, hostname)})
		}
	}
	return e
}

// named returns the compiled host of that name.
func (t *Table) named(name string) *host {
	if name == "" {
		return t.any
	}
	if suffix, ok := strings.CutPrefix(name, "*."); ok {
		return t.wildcard[suffix]
	}
	return t.exact[name]
}

// first returns the routes that stand before all others of their kind and path.
func (h *host) first() map[*Route]bool {
	out := make(map[*Route]bool, len(h.exact))
	for _, r := range h.exact {
		out[r] = true
	}
	var walk func(n *node)
	walk = func(n *node) {
		if n.route != nil {
			out[n.route] = true
		}
		for _, child := range n.next {
			walk(child)
		}
	}
	walk(&h.prefix)
	return out
}

// covers reports whether the host of a rule includes hostname.
func covers(rule, hostname string) bool {
	if rule == "" || rule == hostname {
		return true
	}
	suffix, wild := strings.CutPrefix(rule, "*.")
	label, rest, dotted := strings.Cut(hostname, ".")
	return wild && dotted && label != "" && rest == suffix
}

// pathReason says why r, a route of the host that decides, was not chosen.
func pathReason(r, chosen *Route, path string) Reason {
	if r.Kind == Exact {
		return OtherPath
	}
	prefix := strings.Trim(r.Path, "/")
	rest, ok := strings.CutPrefix(strings.TrimPrefix(path, "/"), prefix)
	switch {
	case !ok:
		return NotPrefix
	case prefix != "" && rest != "" && rest[0] != '/':
		return NotSegments
	case chosen != nil && chosen.Kind == Exact && chosen.Path == path:
		return ExactFirst
	}
	return Shorter
}

func (t *Table) defaultReason(v VirtualHost, chosen *Route, hostname string) Reason {
	switch {
	case v.Default == chosen:
		return Chosen
	case v.Name != "" && !covers(v.Name, hostname):
		return OtherHost
	case v.Name != "" && t.named(v.Name) != t.host(hostname):
		return LessSpecificHost
	}
	return NotNeeded
}
