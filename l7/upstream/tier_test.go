package upstream

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weirproxy/weir/l7/route"
)

// tiered returns a worker's view of a cluster with near endpoints in the first tier
// and far ones in the second.
func tiered(near, far int) (*Clusters, *Cluster, *route.Cluster) {
	c := route.NewCluster("t/a:80", 1)
	list := endpoints(near + far)
	c.SetEndpoints(route.Listing{Tiers: [][]route.Endpoint{list[far:], list[:far]}}) // the far ones sort first
	s := NewClusters(0, rand.New(rand.NewPCG(1, 2)))
	return s, s.Get(c, 0, func(*Peer) {}), c
}

var balances = []route.Balance{route.RoundRobin, route.EWMA, route.Hash}

// picks counts which peers are picked.
func (k *Cluster) picks(b route.Balance, tried []*Peer, now int64) map[*Peer]int {
	count := map[*Peer]int{}
	for i := range uint64(1000) {
		count[k.Pick(b, HashKey(HashSeed, fmt.Append(nil, i)), tried, now)]++
	}
	return count
}

func TestTheNearestTierIsPickedWhileItCan(t *testing.T) {
	for _, b := range balances {
		t.Run(b.String(), func(t *testing.T) {
			_, k, _ := tiered(4, 4)
			near, far := k.active[:4], k.active[4:]
			only := func(when string, got map[*Peer]int, want []*Peer) {
				t.Helper()
				if len(got) != len(want) {
					t.Errorf("%s: %d endpoints are picked, want %d", when, len(got), len(want))
				}
				for _, p := range want {
					if got[p] == 0 {
						t.Errorf("%s: %s is not picked", when, p.Endpoint.Addr)
					}
				}
			}
			only("all work", k.picks(b, nil, 0), near)
			only("one was tried", k.picks(b, near[:1], 0), near[1:])
			k.Eject(near[1], 0)
			only("one was tried, one is ejected", k.picks(b, near[:1], 0), near[2:])
			only("all near ones were tried", k.picks(b, near, 0), far)
			for _, p := range near {
				k.Eject(p, 0)
			}
			only("all near ones are ejected", k.picks(b, nil, 0), far)
			only("their time is over", k.picks(b, nil, ejectFor), near)
			for _, p := range k.active {
				k.Eject(p, 0)
			}
			if p := k.Pick(b, 0, nil, 0); p == nil || p.Endpoint.Addr.Compare(near[0].Endpoint.Addr) < 0 {
				t.Errorf("all are ejected: picked %v, want a near one", p)
			}
			if p := k.Pick(b, 0, k.active, 0); p != nil {
				t.Errorf("all were tried: picked %s", p.Endpoint.Addr)
			}
		})
	}
}

// TestAHashKeepsItsEndpointInATier: what happens in other tiers moves no key.
func TestAHashKeepsItsEndpointInATier(t *testing.T) {
	s, k, c := tiered(5, 5)
	var before []*Peer
	key := func(i int) uint64 { return HashKey(HashSeed, fmt.Append(nil, i)) }
	for i := range 1000 {
		before = append(before, k.Pick(route.Hash, key(i), nil, 0))
	}
	list := endpoints(10)
	c.SetEndpoints(route.Listing{Tiers: [][]route.Endpoint{list[5:], list[:2]}})
	k = s.Get(c, 0, func(*Peer) {})
	for i := range 1000 {
		if p := k.Pick(route.Hash, key(i), nil, 0); p != before[i] {
			t.Fatalf("key %d moved from %s to %s", i, before[i].Endpoint.Addr, p.Endpoint.Addr)
		}
	}
}

func TestATierThatMovesKeepsItsPeers(t *testing.T) {
	s, k, c := tiered(2, 2)
	p := k.active[0]
	s.Put(p, 7)
	list := endpoints(4)
	c.SetEndpoints(route.Listing{Tiers: [][]route.Endpoint{list[:2], list[2:]}})
	k = s.Get(c, 0, func(p *Peer) { t.Errorf("%s stopped", p.Endpoint.Addr) })
	if k.active[2] != p || s.Take(p) != 7 {
		t.Error("a peer that is farther now lost its connections")
	}
}

func TestALostEndpointIsGone(t *testing.T) {
	s, k, c := tiered(1, 1)
	near, list := k.active[0], endpoints(2)
	var gone []*Peer
	stopped := func(p *Peer) { gone = append(gone, p) }
	c.SetEndpoints(route.Listing{Tiers: [][]route.Endpoint{list[:1]}, Lost: list[1:]})
	s.Get(c, 0, stopped)
	if len(gone) != 1 || gone[0] != near || near.State != Gone {
		t.Fatalf("%v stopped, want the near one to be gone", gone)
	}
	c.SetEndpoints(route.Listing{Tiers: [][]route.Endpoint{list}})
	k = s.Get(c, 0, stopped)
	if len(gone) != 1 || k.Size() != 2 || k.active[1] == near {
		t.Error("an endpoint that is found again is still the one that was given up")
	}
}

func TestPickAllocatesNothing(t *testing.T) {
	for _, b := range balances {
		_, k, _ := tiered(3, 100)
		near := k.active[:3]
		k.Pick(b, 0, near, 0) // builds the rings
		k.Pick(b, 0, nil, 0)
		if n := testing.AllocsPerRun(100, func() {
			k.Pick(b, 1<<60, nil, 0)
			k.Pick(b, 1<<60, near, 0)
		}); n != 0 {
			t.Errorf("%v: %v allocations", b, n)
		}
	}
}
