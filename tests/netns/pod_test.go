package netns

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// port is that of every pod.
const port = 8080

// network says how pods are connected with the node.
type network string

const (
	bridged network = "bridged" // all on one bridge: a lost address stays unanswered
	routed  network = "routed"  // a route for each: a lost address is unreachable at once
)

// node is the namespace that the test runs in.
type node struct {
	t       *testing.T
	network network
	logs    string // directory of the backends' logs
	made    int    // pods so far: each has an address of its own
}

func newNode(t *testing.T, n network) *node {
	t.Helper()
	needNode(t)
	ip(t, "link", "set", "lo", "up")
	if n == bridged {
		ip(t, "link", "add", "br0", "type", "bridge")
		t.Cleanup(func() { ip(t, "link", "del", "br0") })
		ip(t, "addr", "add", "10.77.0.1/16", "dev", "br0")
		ip(t, "link", "set", "br0", "up")
	}
	return &node{t: t, network: n, logs: t.TempDir()}
}

// pod is a namespace with an address and a backend.
type pod struct {
	node    *node
	addr    netip.Addr
	link    string // the node's end
	pause   *rig.Process
	backend *rig.Process
}

// newPod returns when the backend accepts connections.
func (n *node) newPod() *pod {
	n.t.Helper()
	n.made++
	p := &pod{node: n, addr: netip.AddrFrom4([4]byte{10, 77, 1, byte(n.made)}), link: fmt.Sprintf("pod%d", n.made)}
	p.pause = rig.Start(n.t, child(modePause, syscall.CLONE_NEWNET))
	p.connect()
	p.start()
	rig.Eventually(n.t, rig.Deadline, "pod "+p.addr.String(), func() error {
		conn, err := net.DialTimeout("tcp", netip.AddrPortFrom(p.addr, port).String(), time.Second)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	return p
}

// child is this binary in another mode.
func child(what string, flags uintptr, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), mode+"="+what), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	return cmd
}

// in runs a command in the pod's namespace.
func (p *pod) in(args ...string) {
	p.node.t.Helper()
	cmd := p.enter(args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		p.node.t.Fatalf("%v in pod %s: %v: %s", args, p.addr, err, out)
	}
}

func (p *pod) enter(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"-t", fmt.Sprint(p.pause.Pid), "-n", "--"}, args...)...)
}

func (p *pod) connect() {
	t := p.node.t
	// A namespace goes some time after its last process; the link goes now.
	t.Cleanup(func() {
		if _, err := net.InterfaceByName(p.link); err == nil {
			ip(t, "link", "del", p.link)
		}
	})
	ip(t, "link", "add", p.link, "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(p.pause.Pid))
	p.in("ip", "link", "set", "lo", "up")
	p.in("ip", "link", "set", "eth0", "up")
	if p.node.network == bridged {
		ip(t, "link", "set", p.link, "master", "br0", "up")
		p.in("ip", "addr", "add", p.addr.String()+"/16", "dev", "eth0")
		return
	}
	ip(t, "link", "set", p.link, "up")
	ip(t, "addr", "add", "10.77.0.1/32", "dev", p.link)
	ip(t, "route", "add", p.addr.String()+"/32", "dev", p.link)
	p.in("ip", "addr", "add", p.addr.String()+"/32", "dev", "eth0")
	p.in("ip", "route", "add", "10.77.0.1/32", "dev", "eth0")
	p.in("ip", "route", "add", "default", "via", "10.77.0.1", "dev", "eth0")
}

// start runs the backend.
func (p *pod) start() {
	cmd := p.enter(os.Args[0])
	cmd.Env = append(os.Environ(), mode+"="+modeBackend,
		fmt.Sprintf("%s=%s:%d", backendAddr, p.addr, port), backendLog+"="+filepath.Join(p.node.logs, p.link))
	p.backend = rig.Start(p.node.t, cmd)
}

// kill ends the backend at once; the address stays, and refuses connections.
func (p *pod) kill() { p.backend.Kill() }

// unplug takes the pod off the network: nothing answers any more, not even with
// a reset.
func (p *pod) unplug() { ip(p.node.t, "link", "del", p.link) }

// executed returns how often each request, "METHOD id", was executed by any pod.
func (n *node) executed() map[string]int {
	n.t.Helper()
	count := map[string]int{}
	files, err := filepath.Glob(filepath.Join(n.logs, "*"))
	if err != nil {
		n.t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			n.t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			count[strings.TrimSpace(line)]++
		}
	}
	return count
}
