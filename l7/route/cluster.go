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
	Addr  netip.AddrPort
	Node  string // the node that runs it, "" if unknown
	Zone  string // its topology zone, "" if unknown
	Local bool   // Node is this node
}

// EndpointSet is what a cluster consists of at one moment. It is immutable.
type EndpointSet struct {
	Version uint64 // counts the sets of its cluster, from 1

	// Active endpoints take new requests: the ready ones, or, if none is ready,
	// those that terminate but still serve. In tiers, each sorted by address; no
	// duplicates.
	Active []*Endpoint
	// Tiers are the ends of the tiers in Active, rising; the last is its length. An
	// endpoint of a tier takes requests only while none before it can. Empty if
	// nothing is active.
	Tiers []int
	// Draining endpoints are still listed but take no new request; what runs on
	// them finishes, and their idle connections are closed.
	Draining []*Endpoint
	// Lost endpoints are still listed too, but known to be cut off: for workers they
	// are gone.
	Lost []*Endpoint
}

// Listing is what an EndpointSet is made from. An address that is in several lists
// counts in the first of them.
type Listing struct {
	Tiers    [][]Endpoint // the active ones, the nearest first; empty tiers are left out
	Draining []Endpoint
	Lost     []Endpoint
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
// An Endpoint that was listed before with equal fields keeps its pointer. One
// goroutine at a time may call it; readers need no lock.
func (c *Cluster) SetEndpoints(l Listing) bool {
	old := c.set.Load()
	p := newPicker(old)
	next := &EndpointSet{Version: old.Version + 1}
	for _, tier := range l.Tiers {
		next.Active = p.pick(next.Active, tier)
		if n := len(next.Active); n > 0 && (len(next.Tiers) == 0 || n > next.Tiers[len(next.Tiers)-1]) {
			next.Tiers = append(next.Tiers, n)
		}
	}
	next.Draining = p.pick(nil, l.Draining)
	next.Lost = p.pick(nil, l.Lost)
	if slices.Equal(next.Active, old.Active) && slices.Equal(next.Tiers, old.Tiers) &&
		slices.Equal(next.Draining, old.Draining) && slices.Equal(next.Lost, old.Lost) {
		return false
	}
	c.set.Store(next)
	return true
}

// picker finds the pointers of endpoints.
type picker struct {
	known map[Endpoint]*Endpoint
	seen  map[netip.AddrPort]bool
}

func newPicker(set *EndpointSet) picker {
	n := len(set.Active) + len(set.Draining) + len(set.Lost)
	p := picker{make(map[Endpoint]*Endpoint, n), make(map[netip.AddrPort]bool, n)}
	for _, list := range [][]*Endpoint{set.Active, set.Draining, set.Lost} {
		for _, e := range list {
			p.known[*e] = e
		}
	}
	return p
}

// pick appends to out, sorted by address, those of list that were not seen yet.
func (p picker) pick(out []*Endpoint, list []Endpoint) []*Endpoint {
	start := len(out)
	out = slices.Grow(out, len(list))
	for _, e := range list {
		if p.seen[e.Addr] {
			continue
		}
		p.seen[e.Addr] = true
		known := p.known[e]
		if known == nil {
			known = &e
		}
		out = append(out, known)
	}
	slices.SortFunc(out[start:], func(a, b *Endpoint) int { return a.Addr.Compare(b.Addr) })
	return out
}
