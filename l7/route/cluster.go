package route

import (
	"net/netip"
	"slices"
	"sync/atomic"
)

// Endpoint is one address and port that serves a cluster. It is immutable and
// keeps its identity (pointer) for as long as the cluster lists its address, so
// a worker can hang its own state on it.
type Endpoint struct {
	Addr netip.AddrPort
	Node string // the node that runs it, "" if unknown
	Zone string // its topology zone, "" if unknown
}

// EndpointSet is what a cluster consists of at one moment. It is immutable.
type EndpointSet struct {
	Version uint64 // counts the sets of its cluster, from 1

	// Active endpoints take new requests: the ready ones, or, if none is ready,
	// those that terminate but still serve. Sorted by address, no duplicates.
	Active []*Endpoint
	// Draining endpoints are still listed but take no new request; what runs on
	// them finishes, and their idle connections are closed.
	Draining []*Endpoint
}

// Cluster is a named set of endpoints. Tables point to it; its endpoints are
// replaced without building a new table.
type Cluster struct {
	Name  string // "namespace/service:port"
	Stats *ClusterStats
	set   atomic.Pointer[EndpointSet]
}

// NewCluster returns a cluster without endpoints, whose statistics have one
// shard for each of workers workers.
func NewCluster(name string, workers int) *Cluster {
	c := &Cluster{Name: name, Stats: NewClusterStats(workers)}
	c.set.Store(&EndpointSet{Version: 1})
	return c
}

// Endpoints returns the current set, never nil. Read only.
func (c *Cluster) Endpoints() *EndpointSet { return c.set.Load() }

// SetEndpoints replaces the endpoints and reports whether anything changed.
//
// Duplicates are merged by address; an address in both lists is active. An
// Endpoint that was listed before with equal fields keeps its pointer. One
// goroutine at a time may call it; readers need no lock.
func (c *Cluster) SetEndpoints(active, draining []Endpoint) bool {
	old := c.set.Load()
	known := make(map[Endpoint]*Endpoint, len(old.Active)+len(old.Draining))
	for _, e := range old.Active {
		known[*e] = e
	}
	for _, e := range old.Draining {
		known[*e] = e
	}
	seen := make(map[netip.AddrPort]bool, len(active)+len(draining))
	pick := func(list []Endpoint) []*Endpoint {
		out := make([]*Endpoint, 0, len(list))
		for _, e := range list {
			if seen[e.Addr] {
				continue
			}
			seen[e.Addr] = true
			p := known[e]
			if p == nil {
				p = &e
			}
			out = append(out, p)
		}
		slices.SortFunc(out, func(a, b *Endpoint) int { return a.Addr.Compare(b.Addr) })
		return out
	}
	next := &EndpointSet{Version: old.Version + 1}
	next.Active = pick(active)
	next.Draining = pick(draining)
	if slices.Equal(next.Active, old.Active) && slices.Equal(next.Draining, old.Draining) {
		return false
	}
	c.set.Store(next)
	return true
}
