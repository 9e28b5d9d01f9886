// Package feature tests what the agent does as a process: it drains, follows
// its manifests, writes logs, spreads connections.
package feature

import (
	"testing"

	"github.com/weirproxy/weir/tests/rig"
)

const host = "a.example.test"

// world is an agent that sends host to one recorder.
type world struct {
	*rig.Agent
	backend *rig.Recorder
}

func newWorld(t *testing.T, flags ...string) *world {
	t.Helper()
	b := rig.NewRecorder(t, "a")
	objects := append(rig.Svc("t1", "a", b.Addr), rig.Ingress("t1", "i", rig.R(host, "/", "Prefix", "a")))
	return &world{Agent: rig.StartAgent(t, objects, flags...), backend: b}
}
