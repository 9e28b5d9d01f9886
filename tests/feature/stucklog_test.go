package feature

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/tests/rig"
)

// stuckLog starts an agent whose access log nobody reads: standard output, a
// pipe, or a FIFO.
func stuckLog(t *testing.T, kind string) *world {
	t.Helper()
	b := rig.NewRecorder(t, "a")
	flags := []string{"--access-log", "json", "--drain-timeout", "60s"}
	var stdout *os.File
	switch kind {
	case "pipe":
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() }) // open to the end: no EPIPE
		stdout = w
	case "FIFO":
		path := filepath.Join(t.TempDir(), "access.log")
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0) // a reader that does not read
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		flags = append(flags, "--access-log-file", path)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(rig.Binary(t), args...)
		if stdout != nil {
			cmd.Stdout = stdout
		}
		return cmd
	}
	objects := append(rig.Svc("t1", "a", b.Addr), rig.Ingress("t1", "i", rig.R(host, "/", "Prefix", "a")))
	return &world{Agent: rig.StartAgentCommand(t, command, objects, flags...), backend: b}
}

// TestAStuckLogCostsLinesAndNothingElse.
func TestAStuckLogCostsLinesAndNothingElse(t *testing.T) {
	agent := "User-Agent: " + strings.Repeat("u", 8000) // fills what takes lines soon
	for _, kind := range []string{"pipe", "FIFO"} {
		for signals := range 3 {
			t.Run(fmt.Sprintf("%s, %d signals", kind, signals), func(t *testing.T) {
				w := stuckLog(t, kind)
				if signals == 0 {
					w.IdleAtEnd()
				}
				clients := []*rig.Client{rig.Dial(t, w.Addr), rig.Dial(t, w.Addr)}
				send := func(n int) {
					for i := range n {
						start, c := time.Now(), clients[i%len(clients)]
						c.Send(rig.Get(host, "/", agent))
						if m := c.Read("GET"); m.Status != 200 {
							t.Fatalf("request -> %d, want 200", m.Status)
						}
						if took := time.Since(start); took > time.Second {
							t.Fatalf("request took %v", took)
						}
					}
				}
				rig.Eventually(t, 2*rig.Deadline, "lines dropped", func() error {
					send(200)
					if n := w.Metric("weir_access_log_dropped_lines_total"); n == 0 {
						return fmt.Errorf("%v lines dropped", n)
					}
					return nil
				})
				send(200)
				for _, c := range clients {
					c.Close()
				}
				w.AwaitIdle()
				if signals > 0 {
					endStuck(t, w, signals)
				}
			})
		}
	}
}

// endStuck ends an idle agent with one signal, or one with a running exchange
// with two.
func endStuck(t *testing.T, w *world, signals int) {
	t.Helper()
	if signals == 2 {
		running, release := hold(w)
		t.Cleanup(func() { close(release) })
		slow := rig.Dial(t, w.Addr)
		slow.Send(rig.Get(host, "/slow"))
		<-running
	}
	w.Signal(syscall.SIGTERM)
	if signals == 2 {
		unready(t, w)
		w.Signal(syscall.SIGTERM)
	}
	start := time.Now()
	code := w.ExitCode(rig.Deadline)
	limit := 3 * time.Second // the agent waits two for the log
	if signals == 2 {
		limit = 1500 * time.Millisecond
	}
	took(t, start, 0, limit)
	if signals == 1 && code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

// TestALogThatIsReadAgainGoesOn: what is written after a stop are whole lines.
func TestALogThatIsReadAgainGoesOn(t *testing.T) {
	b := rig.NewRecorder(t, "a")
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	objects := append(rig.Svc("t1", "a", b.Addr), rig.Ingress("t1", "i", rig.R(host, "/", "Prefix", "a")))
	a := rig.StartAgentCommand(t, func(args ...string) *exec.Cmd {
		cmd := exec.Command(rig.Binary(t), args...)
		cmd.Stdout = out
		return cmd
	}, objects, "--access-log", "json", "--workers", "1")
	out.Close()
	agent := "User-Agent: " + strings.Repeat("u", 8000)
	c := rig.Dial(t, a.Addr)
	requests := 0
	rig.Eventually(t, 2*rig.Deadline, "lines dropped", func() error {
		for range 200 {
			c.Send(rig.Get(host, fmt.Sprintf("/%d", requests), agent))
			c.Read("GET")
			requests++
		}
		if n := a.Metric("weir_access_log_dropped_lines_total"); n == 0 {
			return fmt.Errorf("%v lines dropped", n)
		}
		return nil
	})
	log := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(r)
		log <- string(all)
	}()
	c.Close()
	a.AwaitIdle()
	dropped := int(a.Metric("weir_access_log_dropped_lines_total"))
	a.Signal(syscall.SIGTERM)
	if code := a.ExitCode(rig.Deadline); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	lines := strings.SplitAfter(<-log, "\n")
	written := len(lines) - 1
	for i, line := range lines[:written] {
		if !strings.HasPrefix(line, "{") || !strings.HasSuffix(line, "}\n") {
			t.Fatalf("line %d is no object: %.80q", i, line)
		}
	}
	if lines[written] != "" || written+dropped != requests {
		t.Errorf("%d lines written and %d counted as dropped of %d; behind the last: %.80q", written, dropped, requests, lines[written])
	}
}
