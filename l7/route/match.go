package route

import "strings"

// Match returns the route that serves host and path, or nil: the caller then
// answers 404.
//
// host is lower case, without port and trailing dot; path starts with '/' and
// is already normalised. The most specific host that any rule names decides
// alone: an exact name, then a wildcard of one label, then the rules without
// host. A path that this host does not serve is not looked up under a less
// specific one, since that one may belong to somebody else; only the default
// backend of the rules without host serves what no rule matches (Ingress API,
// spec.defaultBackend). Within a host Exact beats Prefix, and the longest
// Prefix wins. Match does not allocate.
func (t *Table) Match(hostname, path string) *Route {
	if h := t.host(hostname); h != nil {
		if r := h.match(path); r != nil {
			return r
		}
	}
	if t.any != nil {
		return t.any.def
	}
	return nil
}

// host returns the most specific virtual host for name, or nil.
func (t *Table) host(name string) *host {
	if name != "" {
		if h := t.exact[name]; h != nil {
			return h
		}
		if dot := strings.IndexByte(name, '.'); dot > 0 && len(t.wildcard) != 0 {
			if h := t.wildcard[name[dot+1:]]; h != nil {
				return h
			}
		}
	}
	return t.any
}

func (h *host) match(path string) *Route {
	if r := h.exact[path]; r != nil {
		return r
	}
	n := &h.prefix
	best := n.route
	for rest := path; n.next != nil && rest != ""; {
		rest = rest[1:] // the '/' before the segment
		end := strings.IndexByte(rest, '/')
		segment := rest
		if end >= 0 {
			segment = rest[:end]
		}
		child := n.next[segment]
		if child == nil {
			break
		}
		n = child
		if n.route != nil {
			best = n.route
		}
		if end < 0 {
			break
		}
		rest = rest[end:]
	}
	if best == nil {
		best = h.def
	}
	return best
}
