// Up runs a control plane by hand, until it is interrupted:
//
//	go run ./tests/cluster/up          start one and print its kubeconfig
//	go run ./tests/cluster/up -build   only build the programs that it consists of
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/weirproxy/weir/tests/cluster/plane"
)

func main() {
	only := flag.Bool("build", false, "build what is missing, start nothing")
	flag.Parse()
	if err := run(*only); err != nil {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

func run(only bool) error {
	if only {
		return plane.Build(os.Stderr)
	}
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
	fmt.Printf("export KUBECONFIG=%s\nweir agent --source kube --kubeconfig %[1]s --http-address 127.0.0.1:8080\nCtrl-C ends it\n", p.Kubeconfig)
	<-stop
	return nil
}
