package rig

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a child process whose output is kept.
type Process struct {
	Pid  int
	t    testing.TB
	cmd  *exec.Cmd
	log  lockedBuffer
	done chan struct{} // closed when the process has ended
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Start runs cmd until it ends or the test does; then it is killed, and its
// output is shown if the test failed. A process dies with this one.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{t: t, cmd: cmd, done: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.log
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.log
	}
	cmd.WaitDelay = time.Second // a grandchild may keep the output open
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd.Path, err)
	}
	p.Pid = cmd.Process.Pid
	go func() {
		defer close(p.done)
		cmd.Wait() // the state is read by ExitCode
	}()
	t.Cleanup(func() {
		p.Kill()
		if log := p.log.String(); t.Failed() && log != "" {
			t.Logf("output of %s:\n%s", cmd.Path, tail(log, 8<<10))
		}
	})
	return p
}

// tail returns the last n bytes of s.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "[...]" + s[len(s)-n:]
}

// Log returns what the process has printed so far.
func (p *Process) Log() string { return p.log.String() }

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %v to %s: %v", s, p.cmd.Path, err)
	}
}

// Kill ends the process at once and waits for it.
func (p *Process) Kill() {
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("kill %s: %v", p.cmd.Path, err)
	}
	<-p.done
}

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// ExitCode waits for the end of the process and returns its code, -1 if a
// signal ended it.
func (p *Process) ExitCode(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		p.t.Fatalf("%s still runs after %v", p.cmd.Path, within)
		return -1
	}
}

// MustRSS returns the process' resident memory in bytes.
func (p *Process) MustRSS() int64 {
	p.t.Helper()
	n, err := RSS(p.Pid)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}
