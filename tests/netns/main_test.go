// Package netns tests what needs pods with a network of their own.
//
// The test binary starts itself again in a new network namespace: the node. In
// it run the agent and the load. Each pod is a process that does nothing but
// hold a further namespace, as the pause container does, and a backend in it.
// All namespaces end with their processes, and these with the tests.
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/weirproxy/weir/tests/rig"
)

// What this binary does besides testing, by the value of WEIR_NETNS.
const (
	mode        = "WEIR_NETNS"
	modeNode    = "node"    // run the tests: this is the node's namespace
	modePause   = "pause"   // hold a pod's namespace
	modeBackend = "backend" // serve, see backend_test.go
	modeNot     = "not"     // tests can't run, WEIR_NETNS_WHY says why
	why         = "WEIR_NETNS_WHY"
)

func TestMain(m *testing.M) {
	switch os.Getenv(mode) {
	case modePause:
		end := make(chan os.Signal, 1)
		signal.Notify(end, syscall.SIGTERM)
		<-end
		os.Exit(0)
	case modeBackend:
		serveBackend()
	case modeNode, modeNot:
		os.Exit(m.Run())
	}
	if os.Getuid() != 0 {
		os.Setenv(why, "needs root")
		os.Exit(m.Run())
	}
	os.Exit(again())
}

// again runs this binary as the node and returns its exit code.
func again() int {
	// The binary is built here: the node can't reach a module proxy.
	binary, err := rig.Build()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	self := func(what, reason string, flags uintptr) error {
		cmd := exec.Command(os.Args[0], os.Args[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.Env = append(os.Environ(), mode+"="+what, why+"="+reason, "WEIR_BINARY="+binary)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL}
		return cmd.Run()
	}
	err = self(modeNode, "", syscall.CLONE_NEWNET)
	exit, ran := errors.AsType[*exec.ExitError](err)
	if err != nil && !ran {
		// Root without the capability, as in many containers.
		err = self(modeNot, fmt.Sprintf("no network namespace: %v", err), 0)
		exit, ran = errors.AsType[*exec.ExitError](err)
	}
	switch {
	case err == nil:
		return 0
	case ran:
		return exit.ExitCode()
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// needNode skips the test if it does not run in a namespace of its own; with
// WEIR_REQUIRE_ROOT=1 that is a failure.
func needNode(t *testing.T) {
	t.Helper()
	reason := os.Getenv(why)
	switch {
	case reason == "" && os.Getenv(mode) == modeNode:
	case os.Getenv("WEIR_REQUIRE_ROOT") == "1":
		t.Fatalf("namespace tests can't run: %s", reason)
	default:
		t.Skipf("namespace tests can't run: %s", reason)
	}
}

// ip runs the ip command.
func ip(t testing.TB, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}
