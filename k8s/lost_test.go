package k8s

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// losses are addresses that are lost, by their last bytes.
type losses map[byte]uint64

func (l losses) of(a netip.Addr) uint64 { return l[a.As4()[3]] }

const (
	isReady     = "conditions: {ready: true}"
	isNot       = "conditions: {ready: false}"
	terminating = "conditions: {ready: false, serving: true, terminating: true}"
)

// losing is a translator of one cluster.
type losing struct {
	*Translator
	t    *testing.T
	lost losses
	n    uint64
}

func newLosing(t *testing.T, endpoints ...string) *losing {
	l := &losing{t: t, lost: losses{}}
	l.Translator = NewTranslator(Options{NodeName: "n1", Lost: l.lost.of})
	o, _ := parse(t, near("", strings.Join(endpoints, ",")))
	l.Apply(o)
	return l
}

// lose and find change what is lost and tell.
func (l *losing) lose(list ...byte) Result {
	for _, b := range list {
		l.n++
		l.lost[b] = l.n
	}
	return l.tell(list)
}

func (l *losing) find(list ...byte) Result {
	for _, b := range list {
		delete(l.lost, b)
	}
	return l.tell(list)
}

func (l *losing) tell(list []byte) Result {
	var told []netip.Addr
	for _, b := range list {
		told = append(told, netip.AddrFrom4([4]byte{10, 0, 0, b}))
	}
	return l.ApplyLost(told)
}

// slice tells other endpoints.
func (l *losing) slice(endpoints ...string) {
	o, _ := parse(l.t, near("", strings.Join(endpoints, ",")))
	l.ApplySlices(map[types.NamespacedName]*discoveryv1.EndpointSlice{name("t1", "a-1"): o.EndpointSlices[name("t1", "a-1")]})
}

func (l *losing) wants(when, want string) {
	l.t.Helper()
	if got := tierText(l.last.ClusterList[0]); got != want {
		l.t.Errorf("%s: %q, want %q", when, got, want)
	}
}

func here(n int, condition string) string { return endpoint(n, "n1", "z1", condition) }

func TestLostEndpointsTakeNoRequests(t *testing.T) {
	l := newLosing(t, here(1, isReady), here(2, isReady), here(3, terminating), endpoint(4, "n2", "z1", isReady), endpoint(5, `""`, `""`, isReady))
	l.wants("at the start", "1 2 4 5; draining 3")
	if r := l.lose(1); r.EndpointsChanged != 1 || r.Table != nil {
		t.Errorf("%+v, want one change and no table", r)
	}
	l.wants("1 is lost", "2 4 5; draining 3; lost 1")
	if r := l.lose(99); r.EndpointsChanged != 0 {
		t.Errorf("%+v, want no change", r)
	}
	l.lose(3)
	l.wants("3 is lost, which drains", "2 4 5; lost 1 3")
	l.lose(4)
	l.wants("4 is lost, which is not on this node", "2 4 5; lost 1 3")
	l.lose(5)
	l.wants("5 is lost, whose node is not known", "2 4; lost 1 3 5")
	l.find(1, 3)
	l.wants("1 and 3 are found", "1 2 4; draining 3; lost 5")
}

func TestLossesNeverEmptyACluster(t *testing.T) {
	l := newLosing(t, here(1, isReady), here(2, isReady), here(3, terminating), here(4, isNot))
	l.lose(1)
	l.wants("1 is lost", "2; draining 3 4; lost 1")
	l.lose(2)
	l.wants("all that are ready", "3; draining 4; lost 1 2")
	l.lose(3)
	l.wants("all that serve", "1 2; draining 4; lost 3")
	l.lose(4)
	l.wants("all", "1 2; lost 3 4")
	l.slice(here(3, terminating), here(4, isNot))
	l.wants("all, and none is ready", "3; lost 4")
	l.find(3, 4)
	l.wants("found", "3; draining 4")
}

// TestASliceOverrulesAnOlderLoss: it may be another pod with the same address.
func TestASliceOverrulesAnOlderLoss(t *testing.T) {
	l := newLosing(t, here(1, isReady), here(2, isReady), here(3, isNot))
	l.lose(1, 3)
	l.wants("lost", "2; lost 1 3")
	l.slice(here(1, isReady), here(2, isReady), here(3, isNot), here(4, isReady))
	l.wants("another endpoint is new", "2 4; lost 1 3")
	l.slice(here(2, isReady), here(4, isReady))
	l.wants("they are not listed any more", "2 4")
	l.slice(here(1, isReady), here(2, isReady), here(4, isReady))
	l.wants("1 is listed anew", "1 2 4")
	l.slice(here(1, isReady), here(2, isReady))
	l.wants("another one goes", "1 2")
	l.tell([]byte{1})
	l.wants("the old loss is told again", "1 2")
	l.lose(1)
	l.wants("lost once more", "2; lost 1")

	l = newLosing(t, here(1, isNot), here(2, isReady))
	l.lost[1] = 1 // not told yet
	l.slice(here(1, isReady), here(2, isReady))
	l.wants("ready since", "1 2")
	l.slice(here(1, isNot), here(2, isReady))
	l.slice(here(1, isNot), here(2, isReady), here(3, isReady))
	l.wants("not ready again", "2 3; draining 1")
}

// TestOnlyClustersWithTheAddressAreRefreshed holds the cost of a loss down.
func TestOnlyClustersWithTheAddressAreRefreshed(t *testing.T) {
	o := many(100)
	asked := map[netip.Addr]int{}
	lost := false
	tr := NewTranslator(Options{Lost: func(a netip.Addr) uint64 {
		asked[a]++
		if lost && a == netip.MustParseAddr("10.3.0.7") {
			return 1
		}
		return 0
	}})
	tr.Apply(o)
	clear(asked)
	lost = true
	r := tr.ApplyLost([]netip.Addr{netip.MustParseAddr("10.3.0.7"), netip.MustParseAddr("192.0.2.1")})
	if r.EndpointsChanged != 1 || len(asked) != 10 {
		t.Errorf("%d changes, %d endpoints looked at, want 1 and the 10 of one cluster", r.EndpointsChanged, len(asked))
	}
	if n := len(tr.from.judged); n != 1000 {
		t.Errorf("%d addresses can be told of, want all 1000", n)
	}
	tr.Apply(NewObjects())
	if n := len(tr.from.judged); n != 0 {
		t.Errorf("%d addresses are still known when all clusters are gone", n)
	}
}

// BenchmarkLoss is one pod that is cut off and found again.
func BenchmarkLoss(b *testing.B) {
	for _, n := range []int{1000, 5000} {
		o := many(n)
		pod := netip.MustParseAddr("10.0.0.0")
		loss := uint64(0)
		t := NewTranslator(Options{Lost: func(a netip.Addr) uint64 {
			if a == pod {
				return loss
			}
			return 0
		}})
		t.Apply(o)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for i := uint64(1); b.Loop(); i++ {
				if loss = i; i%2 == 0 {
					loss = 0
				}
				if r := t.ApplyLost([]netip.Addr{pod}); r.EndpointsChanged != 1 {
					b.Fatal("no change")
				}
			}
			loss = 0
			t.ApplyLost([]netip.Addr{pod})
		})
	}
}
