package feature

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// TestMoreClientsThanConnections: 300 clients come to an agent that can hold far
// fewer. It serves those it holds and leaves the others in the backlog until
// some go.
func TestMoreClientsThanConnections(t *testing.T) {
	const clients = 300
	for _, c := range []struct {
		name       string
		files      int // RLIMIT_NOFILE
		flags      []string
		least, max int // client connections at a time
	}{
		{"128 descriptors", 128, nil, 20, 102},
		{"128 descriptors, hash", 128, []string{"--accept-policy", "hash"}, 20, 102},
		{"128 descriptors, fountain", 128, []string{"--accept-policy", "fountain", "--fountain-mark", "8"}, 20, 102},
		{"connections-max", 1024, []string{"--connections-max", "40"}, 40, 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := rig.NewRecorder(t, "a")
			limited := func(args ...string) *exec.Cmd {
				script := fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, c.files)
				return exec.Command("sh", append([]string{"-c", script, rig.Binary(t)}, args...)...)
			}
			a := rig.StartAgentCommand(t, limited, service(nil, b.Addr), c.flags...)
			a.IdleAtEnd()
			crowd := newCrowd(t, a, clients)

			rig.Eventually(t, rig.Deadline, "accepting paused", func() error {
				if a.Metric("weir_worker_accept_pauses_total") == 0 {
					return fmt.Errorf("no pause, %d answered", len(crowd.live))
				}
				return nil
			})
			crowd.settle(t)
			if held := a.Metric("weir_worker_connections"); int(held) > c.max || len(crowd.live) < c.least || len(crowd.live) > c.max {
				t.Errorf("%d clients served, %v held, want %d to %d", len(crowd.live), held, c.least, c.max)
			}
			crowd.again(t)
			for served := len(crowd.live); served < clients; served += len(crowd.live) {
				crowd.leave()
				crowd.settle(t)
				if len(crowd.live) == 0 {
					t.Fatalf("%d of %d clients were served, the others wait for ever", served, clients)
				}
			}
			crowd.leave()
			a.AwaitIdle()
			if m := rig.Do(t, a.Addr, "GET", rig.Get(host, "/")); m.Status != 200 {
				t.Errorf("afterwards -> %d, want 200", m.Status)
			}
		})
	}
}

// crowd is clients that have all sent a request. Some are served and live, the
// others wait.
type crowd struct {
	live     []*rig.Client
	answered chan *rig.Client
	failed   chan error
}

func newCrowd(t *testing.T, a *rig.Agent, n int) *crowd {
	t.Helper()
	c := &crowd{answered: make(chan *rig.Client, n), failed: make(chan error, n)}
	for i := range n {
		client := rig.Dial(t, a.Addr)
		client.Send(rig.Get(host, fmt.Sprintf("/%d", i)))
		go c.await(i, client)
	}
	return c
}

// await reads the answer of client number i.
func (c *crowd) await(i int, client *rig.Client) {
	m, err := client.TryRead("GET", 6*rig.Deadline)
	if err == nil && m.Status != 200 {
		err = fmt.Errorf("status %d: %s", m.Status, m.Body)
	}
	if err != nil {
		c.failed <- fmt.Errorf("client %d: %w", i, err)
		return
	}
	c.answered <- client
}

// settle collects the clients that are answered until none is for half a second,
// or five if there was none yet.
func (c *crowd) settle(t *testing.T) {
	t.Helper()
	for {
		quiet := 500 * time.Millisecond
		if len(c.live) == 0 {
			quiet = 5 * time.Second
		}
		select {
		case client := <-c.answered:
			c.live = append(c.live, client)
		case err := <-c.failed:
			t.Fatal(err)
		case <-time.After(quiet):
			return
		}
	}
}

// again has every live client served once more.
func (c *crowd) again(t *testing.T) {
	t.Helper()
	for i, client := range c.live {
		start := time.Now()
		client.Send(rig.Get(host, "/again"))
		if m := client.Read("GET"); m.Status != 200 {
			t.Errorf("live client %d of %d -> %d, want 200", i, len(c.live), m.Status)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("live client %d of %d was served after %v", i, len(c.live), took)
		}
	}
}

// leave closes the live clients.
func (c *crowd) leave() {
	for _, client := range c.live {
		client.Close()
	}
	c.live = nil
}
