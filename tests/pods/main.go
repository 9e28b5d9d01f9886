// Package pods runs pods on this machine: each is a process that does nothing but
// hold a network namespace, as the pause container does, and others that run in
// it. The node is a namespace too: that of the test binary, which Main starts again
// in one of its own. All namespaces end with their processes, and these with the
// tests.
package pods

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

// What a test binary does, by the value of WEIR_POD.
const (
	mode      = "WEIR_POD"
	modeNode  = "node"  // run the tests: this is the node's namespace
	modePause = "pause" // hold a pod's namespace
	modeServe = "serve" // be the backend of a pod, see Serve
	modeNot   = "not"   // tests can't run, WEIR_POD_WHY says why
	why       = "WEIR_POD_WHY"
)

// Main is for TestMain of a package whose tests need a node. prepare runs before in
// the namespace that the binary was started in, for what a node can't do, such as
// reaching a module proxy; its error ends the run. after runs behind the tests.
func Main(m *testing.M, prepare func() error, after func()) {
	Child()
	switch os.Getenv(mode) {
	case modeNode, modeNot:
		code := m.Run()
		after()
		os.Exit(code)
	}
	if os.Getuid() != 0 {
		os.Setenv(why, "needs root")
		os.Exit(m.Run())
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(again())
}

// Child is for the start of every program that has pods, which are processes of the
// same binary: in one of these it does not return.
func Child() {
	switch os.Getenv(mode) {
	case modePause:
		end := make(chan os.Signal, 1)
		signal.Notify(end, syscall.SIGTERM)
		<-end
		os.Exit(0)
	case modeServe:
		serve()
	}
}

// again runs this binary as the node and returns its exit code.
func again() int {
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

// Need skips the test if it does not run in a namespace of its own; with
// WEIR_REQUIRE_ROOT=1 that is a failure.
func Need(t testing.TB) {
	t.Helper()
	reason := os.Getenv(why)
	switch {
	case reason == "" && os.Getenv(mode) == modeNode:
	case os.Getenv("WEIR_REQUIRE_ROOT") == "1":
		t.Fatalf("tests with network namespaces can't run: %s", reason)
	default:
		t.Skipf("tests with network namespaces can't run: %s", reason)
	}
}
