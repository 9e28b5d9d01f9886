package netwatch

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Links of most tests.
const (
	eth0 = iota + 1
	cni0
	vethA
	vethB
)

var (
	podA = netip.MustParseAddr("10.1.0.5")
	podB = netip.MustParseAddr("10.1.0.6")
	macA = hardware{2, 0, 0, 0, 0, 5}
	macB = hardware{2, 0, 0, 0, 0, 6}
)

// world is a table with a clock.
type world struct {
	*table
	t   *testing.T
	now time.Time
}

func newWorld(t *testing.T) *world {
	w := &world{newTable(), t, time.Unix(1000, 0)}
	w.setLink(link{index: eth0, name: "eth0", kind: "veth", up: true, enable: true}) // as on a node of kind
	w.setRoute(netip.MustParsePrefix("0.0.0.0/0"), hop{link: eth0, gateway: netip.MustParseAddr("172.18.0.1")}, false)
	w.setRoute(netip.MustParsePrefix("172.18.0.0/16"), hop{link: eth0}, false)
	return w
}

func (w *world) veth(index, master int) {
	w.setLink(link{index: index, name: fmt.Sprint("veth", index), kind: "veth", up: true, enable: true, master: master})
}

// routed has two pods with a route each.
func routed(t *testing.T) *world {
	w := newWorld(t)
	w.veth(vethA, 0)
	w.veth(vethB, 0)
	w.route(podA, vethA)
	w.route(podB, vethB)
	w.wants("at the start")
	return w
}

// bridged has two pods on a bridge.
func bridged(t *testing.T) *world {
	w := newWorld(t)
	w.setLink(link{index: cni0, name: "cni0", kind: "bridge", up: true, enable: true})
	w.setRoute(netip.MustParsePrefix("10.1.0.0/24"), hop{link: cni0}, false)
	w.own[owned{netip.MustParseAddr("10.1.0.1"), cni0}] = true
	w.veth(vethA, cni0)
	w.veth(vethB, cni0)
	w.meet(podA, macA, vethA)
	w.meet(podB, macB, vethB)
	w.wants("at the start")
	return w
}

func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func (w *world) route(a netip.Addr, link int)   { w.setRoute(host(a), hop{link: link}, false) }
func (w *world) unroute(a netip.Addr, link int) { w.removeRoute(host(a), hop{link: link}) }

// meet is what happens when node and pod speak with each other.
func (w *world) meet(a netip.Addr, mac hardware, port int) {
	w.setPort(station{cni0, mac}, port)
	w.setNeighbour(seat{cni0, a}, neighbour{mac: mac})
}

// wants settles and checks which addresses are lost.
func (w *world) wants(when string, lost ...netip.Addr) {
	w.t.Helper()
	w.settle(w.now)
	w.expire(w.now)
	var got []string
	for a, p := range w.pods {
		if p.lost != 0 {
			got = append(got, a.String())
		}
	}
	slices.Sort(got)
	var want []string
	for _, a := range lost {
		want = append(want, a.String())
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: lost are %v, want %v", when, got, want)
	}
}

// pass lets time go by.
func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

func (w *world) links() string {
	var out []string
	for _, a := range []netip.Addr{podA, podB} {
		out = append(out, w.table.links[w.locate(a)].name)
	}
	return strings.Join(out, " ")
}

func TestAPodWhoseLinkIsDeletedIsLostAtOnce(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *world{"routed": routed, "bridged": bridged} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			if got := w.links(); got != "veth3 veth4" {
				t.Errorf("links are %q", got)
			}
			w.removeLink(vethA)
			w.wants("after the deletion", podA)
			w.pass(lossMax - 1)
			w.wants("before the end of its time", podA)
			w.pass(1)
			w.wants("after ten minutes")
			if len(w.pods) != 1 || len(w.waiting) != 0 {
				t.Errorf("%d pods, %d wait; want the other one and none", len(w.pods), len(w.waiting))
			}
		})
	}
}

func TestTheKernelForgetsWhatIsQuietAndThePodIsStillKnown(t *testing.T) {
	w := bridged(t)
	w.setPort(station{cni0, macA}, 0)
	w.removeNeighbour(seat{cni0, podA})
	w.pass(time.Hour)
	w.wants("long after the last word")
	w.setLink(link{index: vethA, name: "veth3", kind: "veth", enable: false, master: 0}) // as it goes
	w.wants("while it goes")
	w.removeLink(vethA)
	w.wants("when it has gone", podA)
}

func TestAPodWithoutRouteIsLostAfterTheGrace(t *testing.T) {
	w := routed(t)
	w.unroute(podA, vethA)
	w.wants("at once")
	w.pass(grace - 1)
	w.wants("within the grace")
	w.pass(1)
	w.wants("after the grace", podA)
	w.route(podA, vethA)
	w.wants("with its route again")
}

func TestRoutesThatAreFlushedAndSetAgainLoseNobody(t *testing.T) {
	w := routed(t)
	for range 100 {
		w.unroute(podA, vethA)
		w.unroute(podB, vethB)
		w.wants("flushed")
		w.pass(grace / 2)
		w.wants("flushed for half a grace")
		w.route(podA, vethA)
		w.route(podB, vethB)
		w.wants("set again")
	}
	b := bridged(t)
	for range 100 {
		b.removeRoute(netip.MustParsePrefix("10.1.0.0/24"), hop{link: cni0})
		b.wants("flushed")
		b.pass(grace / 2)
		b.setRoute(netip.MustParsePrefix("10.1.0.0/24"), hop{link: cni0}, false)
		b.wants("set again")
	}
	if w.losses+b.losses != 0 {
		t.Errorf("%d losses, want none", w.losses+b.losses)
	}
}

func TestALinkThatIsDownLosesItsPodAfterTheGrace(t *testing.T) {
	for _, test := range []struct {
		name   string
		start  func(*testing.T) *world
		enable bool // it has only no carrier
		back   bool // the pod is there again as soon as the link is up
	}{
		{"routed without carrier", routed, true, true},
		{"routed and disabled", routed, false, false}, // the kernel has dropped the route
		{"bridged without carrier", bridged, true, true},
		{"bridged and disabled", bridged, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := test.start(t)
			up := w.table.links[vethA]
			down := up
			down.up, down.enable = false, test.enable
			w.setLink(down)
			w.wants("down")
			w.pass(grace)
			w.wants("down for a grace", podA)
			w.setLink(up)
			if test.back {
				w.wants("up again")
				return
			}
			w.wants("up without its route", podA)
			w.route(podA, vethA)
			w.wants("up with its route")
		})
	}
}

func TestASilentPodIsLostForALittleWhile(t *testing.T) {
	w := bridged(t)
	w.setNeighbour(seat{cni0, podA}, neighbour{failed: true})
	w.wants("silent", podA)
	w.pass(silenceMax)
	w.wants("after its time")
	w.setPort(station{cni0, macA}, 0) // its hardware address is still known
	w.wants("still silent")
	w.setNeighbour(seat{cni0, podA}, neighbour{mac: macA})
	w.wants("answering")
	w.setNeighbour(seat{cni0, podA}, neighbour{failed: true})
	w.wants("silent again", podA)
	w.setPort(station{cni0, macA}, vethB)
	w.wants("silent behind another port", podA)
	if got := w.links(); got != "veth4 veth4" {
		t.Errorf("links are %q, want both behind veth4", got)
	}
}

func TestALinkThatGoesIsMoreThanSilence(t *testing.T) {
	for _, wait := range []time.Duration{0, silenceMax} {
		w := bridged(t)
		w.setNeighbour(seat{cni0, podA}, neighbour{failed: true})
		w.wants("silent", podA)
		w.pass(wait)
		w.settle(w.now)
		w.expire(w.now)
		w.removeLink(vethA)
		w.pass(silenceMax)
		w.wants("gone", podA)
		w.pass(lossMax)
		w.wants("after its time")
		if w.pods[podA] != nil {
			t.Error("it is never forgotten")
		}
	}
}

func TestASilentPodWhoseLinkIsBackIsLostForALittleWhile(t *testing.T) {
	w := bridged(t)
	w.removeLink(vethA)
	w.wants("gone", podA)
	w.veth(vethA, cni0)
	w.setNeighbour(seat{cni0, podA}, neighbour{failed: true})
	w.wants("there, and silent", podA)
	w.pass(silenceMax)
	w.wants("after its time")
}

func TestAPortThatLeavesItsBridgeLosesItsPodAfterTheGrace(t *testing.T) {
	w := bridged(t)
	w.veth(vethA, 0)
	w.wants("at once")
	w.pass(grace)
	w.wants("after the grace", podA)
	w.veth(vethA, cni0)
	w.wants("in the bridge again")
}

func TestAnAddressThatMovedIsNotLost(t *testing.T) {
	w := routed(t)
	w.setRoute(host(podA), hop{link: eth0, gateway: netip.MustParseAddr("172.18.0.3")}, false)
	w.removeLink(vethA)
	w.wants("moved to another node")
	if w.pods[podA] != nil || w.locate(podA) != 0 {
		t.Error("a pod on another node is known as one of this node")
	}

	b := bridged(t)
	b.setPort(station{cni0, macA}, vethB)
	b.wants("moved to another port")
	b.removeLink(vethA)
	b.wants("its old port is deleted")
	b.removeLink(vethB)
	b.wants("its new port is deleted", podA, podB)
}

func TestAPodThatComesBackIsFound(t *testing.T) {
	w := bridged(t)
	w.removeLink(vethA)
	w.wants("gone", podA)
	w.veth(9, cni0)
	w.wants("a link that is not known to be its", podA)
	w.meet(podA, macB, 9)
	w.wants("seen behind a new link")

	r := routed(t)
	r.removeLink(vethA)
	r.wants("gone", podA)
	r.veth(9, 0)
	r.route(podA, 9)
	r.wants("with a route through a new link")
	if r.losses != 1 {
		t.Errorf("%d losses, want 1", r.losses)
	}
}

func TestWhatIsBehindAnUplinkIsNoPod(t *testing.T) {
	w := newWorld(t)
	neighbour1 := netip.MustParseAddr("172.18.0.3")
	w.route(neighbour1, eth0)
	w.setNeighbour(seat{eth0, neighbour1}, neighbour{mac: macA})
	w.wants("at the start")
	w.removeLink(eth0)
	w.pass(time.Hour)
	w.wants("without uplink")

	b := bridged(t) // then its bridge becomes the uplink
	b.setRoute(netip.MustParsePrefix("0.0.0.0/0"), hop{link: cni0, gateway: netip.MustParseAddr("10.1.0.254"), metric: 5}, false)
	b.wants("with a default route through the bridge")
	b.pass(grace)
	b.wants("after a grace")
	if len(b.pods) != 0 || b.locate(podA) != 0 {
		t.Error("addresses behind an uplink are known as pods")
	}
}

func TestLocal(t *testing.T) {
	w := bridged(t)
	router := netip.MustParseAddr("10.2.0.9")
	w.veth(10, 0)
	w.own[owned{router, 10}] = true // cilium_host
	w.setRoute(netip.MustParsePrefix("10.2.0.0/24"), hop{link: 10, gateway: router}, false)
	w.setRoute(netip.MustParsePrefix("10.3.0.0/24"), hop{link: 10, gateway: router}, false) // another node's pods
	for _, test := range []struct{ addr, link string }{
		{"10.1.0.5", "veth3"},
		{"10.1.0.77", "cni0"}, // nobody has spoken with it
		{"10.1.0.1", "cni0"},
		{"10.2.0.3", "veth10"},
		{"10.2.0.9", "veth10"},
		{"10.3.0.3", ""},
		{"172.18.0.3", ""},
		{"203.0.113.1", ""},
	} {
		if got := w.table.links[w.locate(netip.MustParseAddr(test.addr))].name; got != test.link {
			t.Errorf("%s is behind %q, want %q", test.addr, got, test.link)
		}
	}
}

func TestARouteIsReplaced(t *testing.T) {
	w := routed(t)
	w.setRoute(host(podA), hop{link: vethB}, true)
	w.wants("replaced")
	if got := w.links(); got != "veth4 veth4" {
		t.Errorf("links are %q, want both behind veth4", got)
	}
	w.removeLink(vethA)
	w.wants("its old link is deleted")
	w.removeLink(vethB)
	w.wants("its new link is deleted", podA, podB)
	if len(w.hosts) != 0 || len(w.behind) != 1 {
		t.Errorf("%d routes and %d links are remembered, want none and that of the pods", len(w.hosts), len(w.behind))
	}
}

// TestWhatWasMissedIsFoundByReadingAnew is an overflow.
func TestWhatWasMissedIsFoundByReadingAnew(t *testing.T) {
	w := routed(t)
	w.unroute(podB, vethB)
	w.wants("flushed")
	next := newWorld(t) // lacks A's link
	next.veth(vethB, 0)
	next.adopt(w.table)
	next.wants("read anew", podA)
	next.pass(grace)
	next.wants("after the grace", podA, podB)
	if next.losses != 2 {
		t.Errorf("%d losses, want 2", next.losses)
	}
	again := routed(t)
	again.adopt(next.table)
	again.wants("read anew with both")
	if again.losses != 2 || len(again.waiting) != 0 {
		t.Errorf("%d losses and %d wait, want 2 and none", again.losses, len(again.waiting))
	}
}

// TestARouteConcernsItsSubnetAlone: a cluster has a route and a neighbour for each of
// its nodes, and may set them all again at a time.
func TestARouteConcernsItsSubnetAlone(t *testing.T) {
	w := bridged(t)
	far, other := netip.MustParseAddr("10.99.1.0"), netip.MustParseAddr("10.99.2.0")
	w.setNeighbour(seat{eth0, far}, neighbour{mac: hardware{1}})
	w.setNeighbour(seat{eth0, other}, neighbour{mac: hardware{2}})
	w.settle(w.now)
	for _, change := range []func(){
		func() { w.setRoute(netip.PrefixFrom(far, 24), hop{link: eth0, gateway: far}, false) },
		func() { w.removeRoute(netip.PrefixFrom(far, 24), hop{link: eth0, gateway: far}) },
	} {
		change()
		if len(w.dirty) != 1 || !w.dirty[far] {
			t.Errorf("a route to the subnet of %s has %v looked at", far, w.dirty)
		}
		w.settle(w.now)
	}
}

// TestABlackholeTakesThePlaceOfARoute: the kernel tells of nothing but that.
func TestABlackholeTakesThePlaceOfARoute(t *testing.T) {
	w := routed(t)
	rt := nl.NewRtMsg()
	rt.Family, rt.Type, rt.Dst_len, rt.Table = unix.AF_INET, unix.RTN_BLACKHOLE, 32, unix.RT_TABLE_MAIN
	data := append(rt.Serialize(), nl.NewRtAttr(unix.RTA_DST, podA.AsSlice()).Serialize()...)
	data = append(data, nl.NewRtAttr(unix.RTA_TABLE, nl.Uint32Attr(unix.RT_TABLE_MAIN)).Serialize()...)
	if err := w.takeRoute(message{kind: unix.RTM_NEWROUTE, data: data}); err != nil {
		t.Fatal(err)
	}
	w.pass(2 * grace)
	w.wants("a blackhole beside the route")
	if err := w.takeRoute(message{kind: unix.RTM_NEWROUTE, flags: unix.NLM_F_REPLACE, data: data}); err != nil {
		t.Fatal(err)
	}
	w.wants("in its grace")
	w.pass(2 * grace)
	w.wants("a blackhole in its place", podA)
}
