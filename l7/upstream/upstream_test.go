package upstream

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/weirproxy/weir/l7/route"
)

func endpoints(n int) []route.Endpoint {
	list := make([]route.Endpoint, n)
	for i := range list {
		list[i].Addr = netip.MustParseAddrPort(fmt.Sprintf("10.0.%d.%d:80", i/250, i%250+1))
	}
	return list
}

// active lists endpoints of one tier.
func active(list []route.Endpoint) route.Listing {
	return route.Listing{Tiers: [][]route.Endpoint{list}}
}

// view returns a worker's view of a new cluster of n endpoints.
func view(n int) (*Clusters, *Cluster, *route.Cluster) {
	c := route.NewCluster("t/a:80", 1)
	c.SetEndpoints(active(endpoints(n)))
	s := NewClusters(0, rand.New(rand.NewPCG(1, 2)))
	return s, s.Get(c, 0, func(*Peer) {}), c
}

func TestRoundRobinTakesTurns(t *testing.T) {
	_, k, _ := view(3)
	count := map[*Peer]int{}
	for range 300 {
		count[k.Pick(route.RoundRobin, 0, nil, 0)]++
	}
	if len(count) != 3 {
		t.Fatalf("%d endpoints picked, want 3", len(count))
	}
	for p, n := range count {
		if n != 100 {
			t.Errorf("%s picked %d times of 300, want 100", p.Endpoint.Addr, n)
		}
	}
}

func TestTriedEndpointsAreLeftOut(t *testing.T) {
	for _, balance := range []route.Balance{route.RoundRobin, route.EWMA, route.Hash} {
		for _, n := range []int{1, 2, 3, 8} {
			_, k, _ := view(n)
			var tried []*Peer
			for range n {
				p := k.Pick(balance, 42, tried, 0)
				if p == nil {
					t.Fatalf("%v: nothing to pick after %d of %d", balance, len(tried), n)
				}
				for _, q := range tried {
					if p == q {
						t.Fatalf("%v: %s picked twice", balance, p.Endpoint.Addr)
					}
				}
				tried = append(tried, p)
			}
			if p := k.Pick(balance, 42, tried, 0); p != nil {
				t.Errorf("%v: picked %s after all %d were tried", balance, p.Endpoint.Addr, n)
			}
		}
	}
}

func TestEWMAPrefersTheFasterAndTheLessLoaded(t *testing.T) {
	_, k, _ := view(4)
	for i, p := range k.active {
		us := 1000.0
		if i == 2 {
			us = 20_000
		}
		for ms := range int64(50) {
			p.Observe(us, ms*1000+1)
		}
	}
	slow := 0
	for range 10_000 {
		if k.Pick(route.EWMA, 0, nil, 50_000) == k.active[2] {
			slow++
		}
	}
	if slow != 0 {
		t.Errorf("the slow endpoint was picked %d times although each pair holds a faster one", slow)
	}
	k.active[0].Outstanding = 1000
	for range 10_000 {
		if k.Pick(route.EWMA, 0, nil, 50_000) == k.active[0] {
			t.Fatal("an endpoint with 1000 requests outstanding was picked")
		}
	}
}

func TestObserveFollowsTheLatency(t *testing.T) {
	var p Peer
	p.Observe(1000, 1)
	for i := range int64(100) {
		p.Observe(9000, 1+i*1000)
	}
	if math.Abs(p.ewma-9000) > 100 {
		t.Errorf("average after 100 s at 9000 µs is %.0f, want about 9000", p.ewma)
	}
}

func TestHashKeepsKeysWhenAnEndpointGoes(t *testing.T) {
	s, k, c := view(10)
	const keys = 10_000
	before := make([]*Peer, keys)
	share := map[*Peer]int{}
	for i := range before {
		before[i] = k.Pick(route.Hash, HashKey(HashSeed, fmt.Appendf(nil, "user-%d", i)), nil, 0)
		share[before[i]]++
	}
	for p, n := range share {
		if n < keys/10*6/10 || n > keys/10*15/10 {
			t.Errorf("%s has %d of %d keys, want about a tenth", p.Endpoint.Addr, n, keys)
		}
	}
	gone := k.active[4]
	list := endpoints(10)
	c.SetEndpoints(active(append(list[:4:4], list[5:]...)))
	k = s.Get(c, 0, func(*Peer) {})
	for i, was := range before {
		now := k.Pick(route.Hash, HashKey(HashSeed, fmt.Appendf(nil, "user-%d", i)), nil, 0)
		if was != gone && now != was {
			t.Fatalf("key %d moved from %s to %s although only %s went", i, was.Endpoint.Addr, now.Endpoint.Addr, gone.Endpoint.Addr)
		}
	}
}

func TestEjectedEndpointRestsUntilItsTimeIsOver(t *testing.T) {
	for _, balance := range []route.Balance{route.RoundRobin, route.EWMA, route.Hash} {
		_, k, _ := view(3)
		out := k.active[1]
		k.Eject(out, 1000)
		for i := range 200 {
			if k.Pick(balance, uint64(i)<<56, nil, 1000+ejectFor-1) == out {
				t.Fatalf("%v: ejected endpoint was picked", balance)
			}
		}
		seen := false
		for i := range 2000 {
			seen = seen || k.Pick(balance, HashKey(uint64(i), nil), nil, 1000+ejectFor) == out
		}
		if !seen {
			t.Errorf("%v: endpoint never picked after its time was over", balance)
		}
	}
}

func TestTheLastEndpointIsNeverEjected(t *testing.T) {
	for _, balance := range []route.Balance{route.RoundRobin, route.EWMA, route.Hash} {
		_, k, _ := view(2)
		for _, p := range k.active {
			k.Eject(p, 0)
		}
		if k.Pick(balance, 7, nil, 1) == nil {
			t.Errorf("%v: nothing picked although endpoints exist", balance)
		}
	}
}

func TestAChangeOfTheSliceEndsEjections(t *testing.T) {
	s, k, c := view(2)
	p := k.active[0]
	k.Eject(p, 0)
	c.SetEndpoints(active(endpoints(3)))
	k = s.Get(c, 0, func(*Peer) { t.Error("a peer changed although all stay active") })
	if !p.usable(nil, 1, false) || k.active[0] != p {
		t.Error("the ejected peer is not back, or lost its identity")
	}
}

func TestPeersThatStopAreReported(t *testing.T) {
	s, k, c := view(4)
	for _, p := range k.active {
		s.Put(p, int32(p.Endpoint.Addr.Addr().As4()[3]))
	}
	list := endpoints(4)
	c.SetEndpoints(route.Listing{Tiers: [][]route.Endpoint{list[:2]}, Draining: list[2:3]}) // 3 drains, 4 is gone
	got := map[string]State{}
	s.Follow(func(p *Peer) { got[p.Endpoint.Addr.Addr().String()] = p.State })
	want := map[string]State{"10.0.0.3": Draining, "10.0.0.4": Gone}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("reported %v, want %v", got, want)
	}
	if k.Size() != 2 || s.Idle != 4 {
		t.Errorf("%d active and %d idle, want 2 and 4 (the caller closes)", k.Size(), s.Idle)
	}
	// Back again: the same peer is active.
	c.SetEndpoints(active(list[:3]))
	s.Follow(func(p *Peer) { t.Errorf("%s reported", p.Endpoint.Addr) })
	if k.Size() != 3 || k.active[2].State != Active {
		t.Error("a draining endpoint that is ready again is not active")
	}
}

func TestAClusterThatNoTableUsesServesWhatRuns(t *testing.T) {
	s, k, c := view(2)
	n := 0
	s.Retain(func(*route.Cluster) bool { return false }, func(p *Peer) {
		n++
		if p.State != Gone {
			t.Errorf("%s is %d, want gone", p.Endpoint.Addr, p.State)
		}
	})
	if n != 2 {
		t.Errorf("%d peers reported, want 2", n)
	}
	for _, balance := range []route.Balance{route.RoundRobin, route.EWMA, route.Hash} {
		if k.Pick(balance, 0, nil, 0) == nil {
			t.Errorf("balance %d: a request that runs finds no endpoint for its retry", balance)
		}
	}
	dead := k.Pick(route.RoundRobin, 0, nil, 0)
	k.Forget(dead)
	for _, balance := range []route.Balance{route.RoundRobin, route.EWMA, route.Hash} {
		for range 8 {
			if p := k.Pick(balance, 0, nil, 0); p == nil || p == dead {
				t.Errorf("balance %d: picked %v, want the one that was not found dead", balance, p)
			}
		}
	}
	if s.Get(c, 0, func(*Peer) {}) == k {
		t.Error("the old view is still in use")
	}
}

func TestPoolsAreLastInFirstOut(t *testing.T) {
	s, k, _ := view(1)
	p := k.active[0]
	for fd := range int32(4) {
		s.Put(p, fd+10)
	}
	s.Remove(p, 12)
	var got []int32
	for fd := s.Take(p); fd >= 0; fd = s.Take(p) {
		got = append(got, fd)
	}
	if fmt.Sprint(got) != "[13 11 10]" || s.Idle != 0 {
		t.Errorf("took %v with %d idle left, want [13 11 10] and 0", got, s.Idle)
	}
}

func TestRetryBudgetBoundsAStorm(t *testing.T) {
	_, k, _ := view(2)
	spent := 0
	for i := range 10_000 { // one second of failures only
		k.Earn()
		if k.Spend(int64(i) / 10) {
			spent++
		}
	}
	// 100 saved, a fifth of 10,000 and ten a second for one second.
	if spent < 2000 || spent > 2120 {
		t.Errorf("%d retries for 10,000 requests, want about 2,110", spent)
	}
	if k.Stats.BudgetEmpty.Load() != uint64(10_000-spent) {
		t.Errorf("counted %d refusals, want %d", k.Stats.BudgetEmpty.Load(), 10_000-spent)
	}
}

func BenchmarkPick(b *testing.B) {
	for _, balance := range []route.Balance{route.RoundRobin, route.EWMA, route.Hash} {
		b.Run(balance.String(), func(b *testing.B) {
			_, k, _ := view(100)
			for _, p := range k.active {
				p.Observe(1000, 1)
			}
			b.ReportAllocs()
			h := uint64(0)
			for b.Loop() {
				h += 0x9e3779b97f4a7c15
				k.Pick(balance, h, nil, 1)
			}
		})
	}
}
