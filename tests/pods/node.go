package pods

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/weirproxy/weir/tests/child"
)

// Network says how pods are connected with their node.
type Network string

const (
	Bridged Network = "bridged" // all on one bridge: a lost address stays unanswered
	Routed  Network = "routed"  // a route for each: a lost address is unreachable at once
)

// bridge is the link that bridged pods are on.
const bridge = "br0"

// gateway is the node's address for its pods.
var gateway = netip.MustParseAddr("10.77.0.1")

// Node is the namespace that this process runs in. Any goroutine may use it.
type Node struct {
	network Network
	dir     string // of logs
	made    atomic.Uint32
}

// NewNode prepares the namespace for pods; their logs go to dir. Close undoes it.
func NewNode(n Network, dir string) (*Node, error) {
	if err := ip("link", "set", "lo", "up"); err != nil {
		return nil, err
	}
	if n == Bridged {
		for _, args := range [][]string{
			{"link", "add", bridge, "type", "bridge"},
			{"addr", "add", gateway.String() + "/16", "dev", bridge},
			{"link", "set", bridge, "up"},
		} {
			if err := ip(args...); err != nil {
				return nil, err
			}
		}
	}
	return &Node{network: n, dir: dir}, nil
}

// Close removes what NewNode made; pods must have been removed.
func (n *Node) Close() error {
	if n.network == Bridged {
		return ip("link", "del", bridge)
	}
	return nil
}

// Pod is a namespace with an address.
type Pod struct {
	Addr netip.Addr
	Link string // the node's end

	node  *Node
	pause *child.Process
}

// Add makes a pod with an address that none had before.
func (n *Node) Add() (*Pod, error) {
	i := n.made.Add(1)
	p := &Pod{
		Addr: netip.AddrFrom4([4]byte{10, 77, byte(1 + i/250), byte(1 + i%250)}),
		Link: fmt.Sprintf("pod%d", i),
		node: n,
	}
	cmd := self(modePause)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	var err error
	if p.pause, err = child.Start(cmd, p.Log()); err != nil {
		return nil, err
	}
	if err := p.connect(); err != nil {
		p.Remove()
		return nil, err
	}
	return p, nil
}

func self(what string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), mode+"="+what), env...)
	return cmd
}

// Log is the file that the pod's processes write to.
func (p *Pod) Log() string { return filepath.Join(p.node.dir, p.Link+".log") }

func (p *Pod) connect() error {
	if err := ip("link", "add", p.Link, "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(p.pause.Pid)); err != nil {
		return err
	}
	addr, gate := p.Addr.String(), gateway.String()
	outside := [][]string{{"link", "set", p.Link, "master", bridge, "up"}}
	inside := [][]string{{"addr", "add", addr + "/16", "dev", "eth0"}}
	if p.node.network == Routed {
		outside = [][]string{
			{"link", "set", p.Link, "up"},
			{"addr", "add", gate + "/32", "dev", p.Link},
			{"route", "add", addr + "/32", "dev", p.Link},
		}
		inside = [][]string{
			{"addr", "add", addr + "/32", "dev", "eth0"},
			{"route", "add", gate + "/32", "dev", "eth0"},
			{"route", "add", "default", "via", gate, "dev", "eth0"},
		}
	}
	for _, args := range outside {
		if err := ip(args...); err != nil {
			return err
		}
	}
	for _, args := range append([][]string{{"link", "set", "lo", "up"}, {"link", "set", "eth0", "up"}}, inside...) {
		if err := run(p.Enter("ip", args...)); err != nil {
			return err
		}
	}
	return nil
}

// Enter returns a command that runs in the pod's namespace.
func (p *Pod) Enter(name string, args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"-t", fmt.Sprint(p.pause.Pid), "-n", "--", name}, args...)...)
}

// Own makes every address of network lead to the pod, which answers on all of them:
// so one stands for many.
func (p *Pod) Own(network netip.Prefix) error {
	if err := ip("route", "add", network.String(), "via", p.Addr.String()); err != nil {
		return err
	}
	return run(p.Enter("ip", "route", "add", "local", network.String(), "dev", "lo"))
}

// Unplug takes the pod off the network: nothing answers any more, not even with a
// reset.
func (p *Pod) Unplug() error { return ip("link", "del", p.Link) }

// Remove ends the pod's namespace. Processes in it must have ended.
func (p *Pod) Remove() {
	p.pause.Kill()
	// A namespace goes some time after its last process; the link goes now.
	if _, err := net.InterfaceByName(p.Link); err == nil {
		p.Unplug()
	}
}

func ip(args ...string) error { return run(exec.Command("ip", args...)) }

func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
