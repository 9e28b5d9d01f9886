package agent

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/weirproxy/weir/k8s/report"
)

// Reporting says what is written to the API server, and by whom.
type Reporting struct {
	Status     bool     // write addresses into the status of Ingresses
	Addresses  []string // these: IP addresses or host names; else those of
	Service    string   // namespace/name; else those of the nodes that run Weir
	ClearAtEnd bool     // the last agent removes them when it ends
	Namespace  string   // of the Leases; "" = the pod's
	Lease      string   // name of the one whose holder writes
	Identity   string   // of this agent; "" = the host's name
	Rate       int      // statuses, and as many Events, written per second
}

// CheckAddress says what is wrong with an address to write into statuses, nil if
// nothing is.
func CheckAddress(s string) error { return report.CheckAddress(s) }

// report returns the configuration of the reporter, without the API server.
func (c *Config) report() (report.Config, error) {
	r := c.Kube.Reporting
	if r.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return report.Config{}, fmt.Errorf("name this agent in the election: %w", err)
		}
		r.Identity = host
	}
	if r.Namespace == "" {
		r.Namespace = podNamespace()
	}
	return report.Config{
		Agent: "weir/" + c.Build.Version, Logger: c.Logger,
		Identity: r.Identity, Namespace: r.Namespace, Lease: r.Lease, Rate: r.Rate,
		Publish: report.Publish{
			Status: r.Status, Addresses: r.Addresses, Service: r.Service, ClearAtEnd: r.ClearAtEnd,
			NodeName: c.Objects.NodeName,
		},
	}, nil
}

// podNamespace returns the namespace of this process's pod, or "default" if it runs
// in none.
func podNamespace() string {
	b, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if name := strings.TrimSpace(string(b)); err == nil && name != "" {
		return name
	}
	return "default"
}

// startReport starts the reporter, if there is one. It reports until serving ends;
// end waits for what it does then.
func (a *agent) startReport(serving context.Context) (end func()) {
	if a.reporter == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(serving)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.reporter.Run(ctx, a.view)
	}()
	return func() {
		stop()
		<-done
	}
}

// collectReport shows what was written to the API server.
func collectReport(out sink, s report.Stats) {
	out.gauge(mReportLeading, truth(s.Leading))
	out.gauge(mReportAddresses, float64(s.Addresses))
	out.counter(mStatusWrites, s.StatusWrites)
	out.counter(mStatusRemovals, s.StatusRemovals)
	out.counter(mStatusConflicts, s.StatusConflicts)
	out.counter(mStatusErrors, s.StatusErrors)
	out.gauge(mEventsWanted, float64(s.EventsWanted))
	out.counter(mEventsSent, s.EventsSent)
	out.counter(mEventsDelayed, s.EventsDelayed)
	out.counter(mEventErrors, s.EventErrors)
}
