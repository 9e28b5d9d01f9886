// Package netns tests what needs pods with a network of their own: the agent reads
// files, and pods come and go.
package netns

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/child"
	"github.com/weirproxy/weir/tests/pods"
	"github.com/weirproxy/weir/tests/rig"
)

func TestMain(m *testing.M) { pods.Main(m, func() error { return nil }, func() {}) }

// node is a pods.Node for one test.
type node struct {
	*pods.Node
	t *testing.T
}

func newNode(t *testing.T, n pods.Network) *node {
	t.Helper()
	pods.Need(t)
	p, err := pods.NewNode(n, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return &node{p, t}
}

// pod is one that serves.
type pod struct {
	*pods.Pod
	t       *testing.T
	backend *child.Process
}

// newPod returns when the backend accepts connections.
func (n *node) newPod() *pod {
	n.t.Helper()
	p := &pod{t: n.t}
	var err error
	if p.Pod, err = n.Add(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(p.Remove)
	if p.backend, err = p.Serve(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(p.kill)
	err = p.backend.Await(rig.Deadline, func() error {
		conn, err := net.DialTimeout("tcp", netip.AddrPortFrom(p.Addr, pods.Port).String(), time.Second)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return p
}

// kill ends the backend at once; the address stays, and refuses connections.
func (p *pod) kill() { p.backend.Kill() }

// unplug takes the pod off the network.
func (p *pod) unplug() {
	p.t.Helper()
	if err := p.Unplug(); err != nil {
		p.t.Fatal(err)
	}
}

// silence takes the pod's address away, inside: all that reaches it is dropped.
func (p *pod) silence() {
	p.t.Helper()
	if out, err := p.Enter("ip", "addr", "flush", "dev", "eth0").CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
}

// executed returns how often each request was executed.
func (n *node) executed() map[string]int {
	n.t.Helper()
	count, err := n.Executed()
	if err != nil {
		n.t.Fatal(err)
	}
	return count
}
