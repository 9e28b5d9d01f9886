// Package child runs programs that die with this process.
package child

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Process is a child whose output goes to a file.
type Process struct {
	Name string
	Pid  int
	Done chan struct{} // closed when it has ended

	log string
	cmd *exec.Cmd
}

// Start runs cmd, whose output is appended to the file log. It is not for one with
// a Stdout or Stderr of its own.
func Start(cmd *exec.Cmd, log string) (*Process, error) {
	p := &Process{Name: filepath.Base(cmd.Path), Done: make(chan struct{}), log: log, cmd: cmd}
	f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// A group of its own: a Ctrl-C is for the parent, which then stops this in order.
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	started := make(chan error)
	go func() {
		// Pdeathsig comes when the thread that started it ends: this goroutine stays
		// on its thread and waits.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait() // ExitCode tells how it ended
			close(p.Done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	p.Pid = cmd.Process.Pid
	return p, nil
}

// Signal sends a signal; to a process that has ended it does nothing.
func (p *Process) Signal(s os.Signal) { p.cmd.Process.Signal(s) }

// Stop sends SIGTERM, and SIGKILL if p has not ended within grace.
func (p *Process) Stop(grace time.Duration) {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.Done:
	case <-time.After(grace):
		p.Kill()
	}
}

// Kill ends p at once and waits for it.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.Done
}

// ExitCode returns that of a process that has ended, -1 after a signal.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Await polls ready until it returns nil. It fails when p ends, or after within.
func (p *Process) Await(within time.Duration, ready func() error) error {
	var last error
	for end := time.Now().Add(within); time.Now().Before(end); {
		if last = ready(); last == nil {
			return nil
		}
		select {
		case <-p.Done:
			return fmt.Errorf("%s ended: %s", p.Name, p.Tail())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s is not ready within %v: %w; its log ends: %s", p.Name, within, last, p.Tail())
}

// Tail returns the end of the log.
func (p *Process) Tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4<<10):])
}
