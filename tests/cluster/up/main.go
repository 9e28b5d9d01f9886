// Up runs a cluster by hand, until it is interrupted:
//
//	go run ./tests/cluster/up            a control plane; prints its kubeconfig
//	go run ./tests/cluster/up -nodes 2   nodes too, whose pods run on this machine
//	go run ./tests/cluster/up -build     only build the programs that it consists of
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/weirproxy/weir/tests/cluster/kubelet"
	"github.com/weirproxy/weir/tests/cluster/plane"
	"github.com/weirproxy/weir/tests/pods"
)

func main() {
	pods.Child()
	only := flag.Bool("build", false, "build what is missing, start nothing")
	nodes := flag.Int("nodes", 0, "play so many nodes, each in a zone of its own; needs root")
	flag.Parse()
	start := func() error { return run(*nodes) }
	if *only {
		start = func() error { return plane.Build(os.Stderr) }
	}
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

func run(nodes int) error {
	dir, err := os.MkdirTemp("", "weir-cluster-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	p, err := plane.Start(dir, os.Stderr)
	if err != nil {
		return err
	}
	defer p.Stop()
	if nodes > 0 {
		end, err := addNodes(p, nodes)
		if err != nil {
			return err
		}
		defer end()
	}
	fmt.Printf("export KUBECONFIG=%s\nweir agent --source kube --kubeconfig %[1]s --http-address 127.0.0.1:8080\nCtrl-C ends it\n", p.Kubeconfig)
	<-stop
	return nil
}

// addNodes plays nodes, with pods in namespaces that lead to the one of this process.
func addNodes(p *plane.Plane, count int) (end func(), err error) {
	ground, err := pods.NewNode(pods.Routed, p.Dir)
	if err != nil {
		return nil, err
	}
	var nodes []kubelet.Node
	for n := range count {
		nodes = append(nodes, kubelet.Node{Name: fmt.Sprintf("node-%d", n+1), Zone: fmt.Sprintf("zone-%d", n+1)})
	}
	k, err := kubelet.Start(p.Client(), ground, nodes, func(err error) { fmt.Fprintln(os.Stderr, "up:", err) })
	if err != nil {
		return nil, err
	}
	return func() {
		k.Stop()
		if err := ground.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "up:", err)
		}
	}, nil
}
