package rig

import (
	"fmt"
	"os"
)

// IdleAtEnd has the agent checked when the test ends, after every client that is
// dialled from now on was closed: nothing may be left of them, no descriptor
// either. An agent that has ended, and a test that has failed, are not looked at.
func (a *Agent) IdleAtEnd() {
	a.t.Helper()
	before := a.descriptors()
	a.t.Cleanup(func() {
		if !a.Running() || a.t.Failed() {
			return
		}
		a.AwaitIdle()
		Eventually(a.t, Deadline, "descriptors closed", func() error {
			idle := 0
			for _, w := range a.WorkerStats() {
				idle += int(w["UpstreamIdle"].(float64))
			}
			// The admin address may still be about to close a connection or two.
			if now := a.descriptors(); now > before+idle+2 {
				return fmt.Errorf("%d are open, before it were %d, and %d connections to endpoints are idle", now, before, idle)
			}
			return nil
		})
	})
}

// AwaitIdle waits until no worker has a client's connection or an exchange, and
// every connection to an endpoint lies idle in its pool.
func (a *Agent) AwaitIdle() {
	a.t.Helper()
	Eventually(a.t, Deadline, "idle workers", func() error {
		for i, w := range a.WorkerStats() {
			if w["Connections"] != 0.0 || w["Active"] != 0.0 || w["UpstreamOpen"] != w["UpstreamIdle"] {
				return fmt.Errorf("worker %d: Connections %v, Active %v, UpstreamOpen %v, UpstreamIdle %v; want 0, 0 and idle ones only",
					i, w["Connections"], w["Active"], w["UpstreamOpen"], w["UpstreamIdle"])
			}
		}
		return nil
	})
}

// descriptors returns how many files the agent has open.
func (a *Agent) descriptors() int {
	a.t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", a.Pid))
	if err != nil {
		a.t.Fatal(err)
	}
	return len(list)
}
