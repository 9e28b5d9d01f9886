// Package upstream picks an endpoint and remembers how it does.
//
// Each worker has its own Clusters: nothing here is shared between workers and
// nothing locks. The package opens no socket; a connection is a number that the
// worker chose (its descriptor), kept here only while it is idle.
package upstream

import (
	"math/rand/v2"
	"slices"

	"github.com/weirproxy/weir/l7/route"
)

// State says whether an endpoint takes requests.
type State uint8

const (
	Active   State = iota // takes new requests
	Draining              // finishes what runs, takes nothing new
	Gone                  // listed by no EndpointSlice any more
)

// Peer is one endpoint as one worker sees it.
type Peer struct {
	Endpoint    *route.Endpoint
	State       State
	Outstanding int32   // exchanges on it
	idle        []int32 // descriptors, the most recently used last

	ewma     float64 // of the time to the first byte, µs
	ewmaAt   int64   // when it was updated, ms
	outUntil int64   // ejected until then, ms; 0: in rotation
}

// Cluster is one worker's view of a route.Cluster.
type Cluster struct {
	Route *route.Cluster
	Stats *route.ClusterShard

	set    *route.EndpointSet
	active []*Peer
	tiers  []tier // parts of active, the nearest first
	peers  map[*route.Endpoint]*Peer
	budget budget
	random *rand.Rand
}

// Clusters are all clusters that one worker has used.
type Clusters struct {
	worker int
	random *rand.Rand
	byPtr  map[*route.Cluster]*Cluster
	last   *Cluster // the one most recently asked for
	Idle   int      // idle connections of all peers
}

// NewClusters returns the empty set of worker number worker. random is used by
// that worker's goroutine only.
func NewClusters(worker int, random *rand.Rand) *Clusters {
	return &Clusters{worker: worker, random: random, byPtr: make(map[*route.Cluster]*Cluster)}
}

// Get returns the worker's view of c, in step with c's current endpoints.
// changed is called for each peer that became Draining or Gone by that.
func (s *Clusters) Get(c *route.Cluster, now int64, changed func(*Peer)) *Cluster {
	k := s.last
	if k == nil || k.Route != c {
		k = s.byPtr[c]
		if k == nil {
			k = &Cluster{
				Route:  c,
				Stats:  &c.Stats.Shards[s.worker],
				peers:  make(map[*route.Endpoint]*Peer),
				random: s.random,
			}
			k.budget.init(now)
			s.byPtr[c] = k
		}
		s.last = k
	}
	if set := c.Endpoints(); set != k.set {
		k.follow(set, changed)
	}
	return k
}

// Follow brings every cluster in step with its endpoints.
func (s *Clusters) Follow(changed func(*Peer)) {
	for c, k := range s.byPtr {
		if set := c.Endpoints(); set != k.set {
			k.follow(set, changed)
		}
	}
}

// Retain forgets the clusters that no table uses any more. Requests that run on them
// may finish, and be repeated on another of their peers. Nobody tells any more
// whether these live: they are Gone.
func (s *Clusters) Retain(used func(*route.Cluster) bool, changed func(*Peer)) {
	for c, k := range s.byPtr {
		if used(c) {
			continue
		}
		for _, p := range k.peers {
			p.State = Gone
			changed(p)
		}
		delete(s.byPtr, c)
		if s.last == k {
			s.last = nil
		}
	}
}

// follow replaces the endpoint set. Peers that stay keep their connections and
// their history; every change ends the ejections (the slice knows better).
func (k *Cluster) follow(set *route.EndpointSet, changed func(*Peer)) {
	old := k.peers
	k.set = set
	k.peers = make(map[*route.Endpoint]*Peer, len(set.Active)+len(set.Draining))
	k.active = make([]*Peer, 0, len(set.Active))
	move := func(e *route.Endpoint, to State) {
		p := old[e]
		if p == nil {
			p = &Peer{Endpoint: e, State: to}
		}
		delete(old, e)
		k.peers[e] = p
		p.outUntil = 0
		if to == Active {
			k.active = append(k.active, p)
		}
		if was := p.State; was != to {
			p.State = to
			if to != Active {
				changed(p)
			}
		}
	}
	for _, e := range set.Active {
		move(e, Active)
	}
	k.split()
	for _, e := range set.Draining {
		move(e, Draining)
	}
	for _, p := range old {
		p.State = Gone
		changed(p)
	}
}

// Size returns the number of endpoints that take requests.
func (k *Cluster) Size() int { return len(k.active) }

// Put stores an idle connection.
func (s *Clusters) Put(p *Peer, fd int32) {
	p.idle = append(p.idle, fd)
	s.Idle++
}

// Take removes and returns the most recently used idle connection, or -1.
func (s *Clusters) Take(p *Peer) int32 {
	n := len(p.idle)
	if n == 0 {
		return -1
	}
	fd := p.idle[n-1]
	p.idle = p.idle[:n-1]
	s.Idle--
	return fd
}

// Remove forgets an idle connection that is about to be closed.
func (s *Clusters) Remove(p *Peer, fd int32) {
	for i := len(p.idle) - 1; i >= 0; i-- {
		if p.idle[i] == fd {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			s.Idle--
			return
		}
	}
}

// IdleOf returns p's idle connections; valid until the next Put, Take or Remove.
func (p *Peer) IdleOf() []int32 { return p.idle }

// Forget has p picked no more: it was found dead.
func (k *Cluster) Forget(p *Peer) {
	for i := range k.tiers {
		t := &k.tiers[i]
		if at := slices.Index(t.peers, p); at >= 0 {
			t.peers = slices.Delete(slices.Clone(t.peers), at, at+1)
			t.ring = ring{}
		}
	}
}

// Left reports whether an endpoint that takes requests is not in tried.
func (k *Cluster) Left(tried []*Peer) bool {
	for _, p := range k.active {
		if !slices.Contains(tried, p) {
			return true
		}
	}
	return false
}

// Out reports whether p is ejected.
func (p *Peer) Out(now int64) bool { return p.outUntil > now }
