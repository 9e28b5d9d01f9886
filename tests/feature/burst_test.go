package feature

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// TestEveryClientThatIsHeldCanBeServed: connections come first, their requests
// later and all at once. For each client that was accepted a descriptor must be
// left for its endpoint.
func TestEveryClientThatIsHeldCanBeServed(t *testing.T) {
	const clients = 100
	b := rig.NewRecorder(t, "a").Handle(delayed(300 * time.Millisecond)) // so that none can be reused
	limited := func(args ...string) *exec.Cmd {
		return exec.Command("sh", append([]string{"-c", `ulimit -n 128 && exec "$0" "$@"`, rig.Binary(t)}, args...)...)
	}
	a := rig.StartAgentCommand(t, limited, service(nil, b.Addr))
	a.IdleAtEnd()
	crowd := &crowd{answered: make(chan *rig.Client, clients), failed: make(chan error, clients)}
	var all []*rig.Client
	for range clients {
		all = append(all, rig.Dial(t, a.Addr))
	}
	held := -1.0
	rig.Eventually(t, rig.Deadline, "accepting at rest", func() error {
		before := held
		if held = a.Metric("weir_worker_connections"); held != before || held == 0 {
			return fmt.Errorf("%v connections, then %v", before, held)
		}
		return nil
	})
	for i, c := range all {
		c.Send(rig.Get(host, fmt.Sprintf("/%d", i)))
		go crowd.await(i, c)
	}
	refused := 0
	for range clients {
		select {
		case c := <-crowd.answered:
			c.Close() // makes room for those that wait
		case err := <-crowd.failed:
			if refused++; refused == 1 {
				t.Errorf("%v connections were held: %v", held, err)
			}
		case <-time.After(rig.Deadline):
			t.Fatal("some clients are never served")
		}
	}
	if refused != 0 {
		t.Errorf("%d of %d clients were not served", refused, clients)
	}
}
