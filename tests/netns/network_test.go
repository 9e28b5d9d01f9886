package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirproxy/weir/agent/netwatch"
	"github.com/weirproxy/weir/tests/pods"
	"github.com/weirproxy/weir/tests/rig"
)

// noticed is how soon a pod whose link is deleted has to be lost.
const noticed = 50 * time.Millisecond

// watching is a watcher of the node's network, and what it told.
type watching struct {
	*netwatch.Watcher
	t *testing.T

	mu   sync.Mutex
	told map[netip.Addr]time.Time // last
	hold chan struct{}            // not nil: what it tells has to wait until it is closed
}

func watch(t *testing.T) *watching {
	w := &watching{t: t, told: map[netip.Addr]time.Time{}}
	w.Watcher = netwatch.New(func(list []netip.Addr) {
		now := time.Now()
		w.mu.Lock()
		for _, a := range list {
			w.told[a] = now
		}
		hold := w.hold
		w.mu.Unlock()
		if hold != nil {
			<-hold
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if w.Stats().Watching {
			t.Error("it says that it watches, and has ended")
		}
	})
	w.await("it watches", func() bool { return w.Stats().Watching })
	return w
}

func (w *watching) await(what string, holds func() bool) {
	w.t.Helper()
	rig.Eventually(w.t, rig.Deadline, what, func() error {
		if !holds() {
			return fmt.Errorf("not so: %+v", w.Stats())
		}
		return nil
	})
}

// known waits until the link of p is known to be its own.
func (w *watching) known(p *pods.Pod) {
	w.t.Helper()
	w.await("link of "+p.Addr.String(), func() bool {
		link, _ := w.Local(p.Addr)
		return link == p.Link
	})
}

// late returns how long after start it was told of a.
func (w *watching) late(a netip.Addr, start time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told[a].Sub(start)
}

// speak lets node and pod learn each other's hardware addresses.
func (n *node) speak(p *pods.Pod) {
	n.t.Helper()
	rig.Eventually(n.t, rig.Deadline, "answer of "+p.Addr.String(), func() error {
		conn, err := net.DialTimeout("tcp", netip.AddrPortFrom(p.Addr, 1).String(), time.Second)
		if err == nil {
			conn.Close()
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		return err
	})
}

// add makes n pods that have spoken.
func (n *node) add(count int) (list []*pods.Pod) {
	n.t.Helper()
	for range count {
		p, err := n.Add()
		if err != nil {
			n.t.Fatal(err)
		}
		n.t.Cleanup(p.Remove)
		n.speak(p)
		list = append(list, p)
	}
	return list
}

// sh runs ip with the words of a line.
func sh(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", line, err, out)
	}
}

// batch runs ip once with many lines.
func batch(t *testing.T, lines []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "batch")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	sh(t, "-batch "+file)
}

func networks(t *testing.T, test func(t *testing.T, n *node)) {
	for _, network := range []pods.Network{pods.Bridged, pods.Routed} {
		t.Run(string(network), func(t *testing.T) { test(t, newNode(t, network)) })
	}
}

func TestAPodIsKnownByItsLinkAndLostWithIt(t *testing.T) {
	networks(t, func(t *testing.T, n *node) {
		before := n.add(2) // found by reading
		w := watch(t)
		all := append(before, n.add(2)...) // told by the kernel
		for _, p := range all {
			w.known(p)
		}
		if link, local := w.Local(netip.MustParseAddr("203.0.113.1")); local {
			t.Errorf("203.0.113.1 is said to be local, behind %q", link)
		}
		for i, p := range all {
			if i%2 == 1 {
				p.Remove() // with its namespace
			} else if err := p.Unplug(); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			w.await("loss of "+p.Addr.String(), func() bool { return w.Lost(p.Addr) != 0 })
			if late := w.late(p.Addr, start); late > noticed {
				t.Errorf("%s: told %v after its link was deleted, want %v at most", p.Addr, late, noticed)
			} else {
				t.Logf("%s: told after %v", p.Addr, late)
			}
			if s := w.Stats(); s.Lost != i+1 || s.Losses != uint64(i+1) {
				t.Errorf("%d lost, %d losses, want %d", s.Lost, s.Losses, i+1)
			}
		}
	})
}

func TestALinkGoesDownAndUp(t *testing.T) {
	networks(t, func(t *testing.T, n *node) {
		w := watch(t)
		list := n.add(2)
		for _, p := range list {
			w.known(p)
		}
		mine, theirs := list[0], list[1]
		start := time.Now()
		sh(t, "link set "+mine.Link+" down")
		if out, err := theirs.Enter("ip", "link", "set", "eth0", "down").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, p := range list {
			w.await("loss of "+p.Addr.String(), func() bool { return w.Lost(p.Addr) != 0 })
			if late := w.late(p.Addr, start); late < 900*time.Millisecond || late > 3*time.Second {
				t.Errorf("%s: lost after %v, want about a second", p.Addr, late)
			}
		}
		sh(t, "link set "+mine.Link+" up")
		if link, _ := w.Local(mine.Addr); link != mine.Link {
			sh(t, fmt.Sprintf("route replace %s/32 dev %s", mine.Addr, mine.Link)) // went with the link
		}
		if out, err := theirs.Enter("ip", "link", "set", "eth0", "up").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, p := range list {
			w.await("return of "+p.Addr.String(), func() bool { return w.Lost(p.Addr) == 0 })
		}
	})
}

// many makes count links whose other ends stay on the node, with a route each, and
// returns the lines that set the routes.
func many(t *testing.T, count int) (addrs []netip.Addr, routes []string) {
	t.Helper()
	t.Cleanup(func() { exec.Command("ip", "link", "del", "group", "77").Run() }) // there are none if the test went well
	var links []string
	for i := range count {
		a := netip.AddrFrom4([4]byte{10, 78, byte(i / 250), byte(1 + i%250)})
		addrs = append(addrs, a)
		links = append(links, fmt.Sprintf("link add m%d group 77 up type veth peer name n%d", i, i), fmt.Sprintf("link set n%d up", i))
		routes = append(routes, fmt.Sprintf("route add %s/32 dev m%d", a, i))
	}
	batch(t, links)
	batch(t, routes)
	return addrs, routes
}

func TestAThousandPodsAndABurstOfTheirRoutes(t *testing.T) {
	newNode(t, pods.Routed)
	w := watch(t)
	addrs, add := many(t, 1000)
	w.await("1000 pods", func() bool { return w.Stats().Pods == 1000 })
	var remove []string
	for _, line := range add {
		remove = append(remove, strings.Replace(line, "add", "del", 1))
	}
	for range 5 {
		batch(t, append(remove, add...))
	}
	deadline := time.Now().Add(1500 * time.Millisecond) // past the grace of each
	for time.Now().Before(deadline) {
		if s := w.Stats(); s.Losses != 0 {
			t.Fatalf("%d pods were lost by routes that were set again", s.Losses)
		}
		pause(10 * time.Millisecond)
	}
	start := time.Now()
	sh(t, "link del group 77")
	deleted := time.Now()
	w.await("all are lost", func() bool { return w.Stats().Lost == 1000 })
	last := time.Duration(0)
	for _, a := range addrs {
		last = max(last, w.late(a, deleted))
	}
	t.Logf("1000 links deleted in %v; the last loss told %v later; %+v", deleted.Sub(start), last, w.Stats())
	if last > noticed {
		t.Errorf("the last loss was told after %v, want %v at most", last, noticed)
	}
}

// TestAnOverflowIsMadeUpFor: what the kernel could not tell is found by reading
// anew.
func TestAnOverflowIsMadeUpFor(t *testing.T) {
	n := newNode(t, pods.Routed)
	w := watch(t)
	list := n.add(4)
	for _, p := range list {
		w.known(p)
	}
	hold := make(chan struct{})
	w.mu.Lock()
	w.hold = hold
	w.mu.Unlock()
	if err := list[0].Unplug(); err != nil { // its loss is told, and that takes long
		t.Fatal(err)
	}
	w.await("first loss", func() bool { return w.Lost(list[0].Addr) != 0 })
	var lines []string
	for i := range 20_000 {
		lines = append(lines, fmt.Sprintf("route add 10.%d.%d.%d/32 dev %s", 100+i/62500, i/250%250, i%250, list[3].Link))
	}
	batch(t, lines)
	if err := list[1].Unplug(); err != nil {
		t.Fatal(err)
	}
	if w.Lost(list[1].Addr) != 0 {
		t.Fatal("the loss is known although nothing is read")
	}
	close(hold)
	w.await("second loss", func() bool { return w.Lost(list[1].Addr) != 0 })
	s := w.Stats()
	if s.Overflows == 0 {
		t.Fatalf("no overflow: %+v", s)
	}
	w.await("all routes", func() bool { return w.Stats().Pods == 20_004 })
	if s := w.Stats(); s.Losses != 2 || s.Lost != 2 {
		t.Errorf("%+v, want two losses", s)
	}
	if err := list[2].Unplug(); err != nil {
		t.Fatal(err)
	}
	w.await("a loss after the overflow", func() bool { return w.Lost(list[2].Addr) != 0 })
}

// TestPodsWithIPv6: one with a route, one on a bridge.
func TestPodsWithIPv6(t *testing.T) {
	newNode(t, pods.Routed)
	w := watch(t)
	batch(t, []string{
		"link add r0 group 77 up type veth peer name r1", "link set r1 up",
		"link add b0 up type bridge",
		"link add p0 group 77 master b0 up type veth peer name p1", "link set p1 up",
		"addr add fd01::1/64 dev b0 nodad",
		"route add fd02::5/128 dev r0",
		"neigh add fd01::5 lladdr 02:00:00:00:00:05 dev b0",
	})
	t.Cleanup(func() { sh(t, "link del b0") })
	if out, err := exec.Command("bridge", "fdb", "add", "02:00:00:00:00:05", "dev", "p0", "master", "static").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	routed, bridged := netip.MustParseAddr("fd02::5"), netip.MustParseAddr("fd01::5")
	for a, want := range map[netip.Addr]string{
		routed: "r0", bridged: "p0", netip.MustParseAddr("fd01::7"): "b0", netip.MustParseAddr("fd01::1"): "b0",
	} {
		w.await(a.String()+" behind "+want, func() bool { link, _ := w.Local(a); return link == want })
	}
	sh(t, "link del group 77")
	w.await("both are lost", func() bool { return w.Lost(routed) != 0 && w.Lost(bridged) != 0 })
	if s := w.Stats(); s.Losses != 2 {
		t.Errorf("%+v, want two losses", s)
	}
}
