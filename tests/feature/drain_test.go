package feature

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// hold makes the backend answer /slow only after release is closed; running
// tells when such a request has come.
func hold(w *world) (running, release chan struct{}) {
	running, release = make(chan struct{}, 1), make(chan struct{})
	w.backend.Handle(func(x *rig.Exchange) {
		if strings.HasSuffix(x.Line(), "/slow") {
			running <- struct{}{}
			<-release
		}
		x.Answer(200, "a")
	})
	return running, release
}

// unready waits until /readyz answers 503.
func unready(t *testing.T, w *world) {
	t.Helper()
	rig.Eventually(t, rig.Deadline, "not ready", func() error {
		status, _, err := w.AdminGet("/readyz")
		if err == nil && status != 503 {
			err = fmt.Errorf("/readyz: %d, want 503", status)
		}
		return err
	})
}

func TestDrainFinishesWhatRunsAndTakesWhatComes(t *testing.T) {
	w := newWorld(t, "--drain-timeout", "30s")
	running, release := hold(w)
	idle := rig.Dial(t, w.Addr)
	idle.Send(rig.Get(host, "/"))
	idle.Read("GET")
	slow := rig.Dial(t, w.Addr)
	slow.Send(rig.Get(host, "/slow"))
	<-running

	w.Signal(syscall.SIGTERM)
	unready(t, w)
	idle.ExpectClosed(rig.Deadline)

	late := rig.Dial(t, w.Addr)
	late.Send(rig.Get(host, "/late"))
	if m := late.Read("GET"); m.Status != 200 || !strings.EqualFold(m.Value("Connection"), "close") {
		t.Errorf("request during the drain -> %d, Connection %q, want 200 and close", m.Status, m.Value("Connection"))
	}
	late.ExpectClosed(rig.Deadline)
	if !w.Running() {
		t.Fatal("the agent ended while an exchange was running")
	}
	close(release)
	if m := slow.Read("GET"); m.Status != 200 || string(m.Body) != "a" || !strings.EqualFold(m.Value("Connection"), "close") {
		t.Errorf("running exchange -> %d %q, Connection %q, want 200 a and close", m.Status, m.Body, m.Value("Connection"))
	}
	if code := w.ExitCode(rig.Deadline); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestASecondSignalEndsTheDrainAtOnce(t *testing.T) {
	w := newWorld(t, "--drain-timeout", "60s")
	running, release := hold(w)
	defer close(release)
	slow := rig.Dial(t, w.Addr)
	slow.Send(rig.Get(host, "/slow"))
	<-running
	w.Signal(syscall.SIGTERM)
	unready(t, w)
	start := time.Now()
	w.Signal(syscall.SIGTERM)
	w.ExitCode(rig.Deadline)
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("ended %v after the second signal, want at once", took)
	}
	slow.ExpectClosed(rig.Deadline)
}

func TestTheDrainDeadlineIsEnforced(t *testing.T) {
	w := newWorld(t, "--drain-timeout", "1s")
	running, release := hold(w)
	defer close(release)
	slow := rig.Dial(t, w.Addr)
	slow.Send(rig.Get(host, "/slow"))
	<-running
	start := time.Now()
	w.Signal(syscall.SIGINT)
	code := w.ExitCode(rig.Deadline)
	if took := time.Since(start); code != 0 || took < 900*time.Millisecond || took > 3*time.Second {
		t.Errorf("exit code %d after %v, want 0 after 1 s", code, took)
	}
}

func TestAnIdleAgentEndsAtOnce(t *testing.T) {
	w := newWorld(t)
	start := time.Now()
	w.Signal(syscall.SIGTERM)
	if code, took := w.ExitCode(rig.Deadline), time.Since(start); code != 0 || took > 3*time.Second {
		t.Errorf("exit code %d after %v, want 0 at once", code, took)
	}
}
