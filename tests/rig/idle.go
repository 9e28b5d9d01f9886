package rig

import "fmt"

// IdleAtEnd has the agent checked when the test ends, after every client that is
// dialled from now on was closed: nothing may be left of them. An agent that has
// ended, and a test that has failed, are not looked at.
func (a *Agent) IdleAtEnd() {
	a.t.Cleanup(func() {
		if a.Running() && !a.t.Failed() {
			a.AwaitIdle()
		}
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
