package route

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Replace returns a table that has hosts in the place of those of t with the same
// name, and lacks those named in removed. Its cost is that of the hosts given and
// of copying t's index, not of compiling t.
//
// t must have been built from hosts in ascending order of their names, without
// duplicates, and so must hosts be. It fails as NewTable does.
func (t *Table) Replace(version uint64, hosts []VirtualHost, removed []string) (*Table, error) {
	n := &Table{
		Version: version, exact: maps.Clone(t.exact), wildcard: maps.Clone(t.wildcard), any: t.any,
		clusters: maps.Clone(t.clusters), routes: t.routes,
	}
	gone := make(map[string]bool, len(hosts)+len(removed))
	for _, name := range removed {
		gone[name] = true
	}
	for _, v := range hosts {
		gone[v.Name] = true
	}
	for name := range gone {
		if at, ok := slices.BinarySearchFunc(t.hosts, name, byName); ok {
			n.remove(t.hosts[at])
		}
	}
	for _, v := range hosts {
		if err := n.add(v); err != nil {
			return nil, fmt.Errorf("host %q: %w", v.Name, err)
		}
	}
	n.hosts = make([]VirtualHost, 0, len(t.hosts)+len(hosts))
	for _, v := range t.hosts {
		for len(hosts) > 0 && hosts[0].Name < v.Name {
			n.hosts, hosts = append(n.hosts, hosts[0]), hosts[1:]
		}
		if !gone[v.Name] {
			n.hosts = append(n.hosts, v)
		}
	}
	n.hosts = append(n.hosts, hosts...)
	return n, nil
}

func byName(v VirtualHost, name string) int { return strings.Compare(v.Name, name) }

// add compiles v into t, but for the list of hosts.
func (t *Table) add(v VirtualHost) error {
	h, err := compile(v)
	if err != nil {
		return err
	}
	if err := t.place(v.Name, h); err != nil {
		return err
	}
	t.count(v, 1)
	return nil
}

// remove takes v out of t, but for the list of hosts.
func (t *Table) remove(v VirtualHost) {
	if v.Name == "" {
		t.any = nil
	} else if suffix, ok := strings.CutPrefix(v.Name, "*."); ok {
		delete(t.wildcard, suffix)
	} else {
		delete(t.exact, v.Name)
	}
	t.count(v, -1)
}

// count adds each route of v, or with sign -1 takes it away.
func (t *Table) count(v VirtualHost, sign int) {
	one := func(r *Route) {
		t.routes += sign
		if t.clusters[r.Cluster] += sign; t.clusters[r.Cluster] == 0 {
			delete(t.clusters, r.Cluster)
		}
	}
	for _, r := range v.Routes {
		one(r)
	}
	if v.Default != nil {
		one(v.Default)
	}
}
