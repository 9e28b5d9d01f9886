package agent

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/l7"
)

// statusClasses are the values of the label status, by index of RouteShard.Status.
var statusClasses = [6]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

// collector reads the counters of the agent, the workers and the table when it is
// scraped.
type collector struct {
	state *state
	stats func() l7.Stats
	build Build
}

// Describe sends nothing: a registry then takes what Collect sends.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends one metric for each series. It may run several times at once.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	out := sink{ch}
	s := c.stats()
	c.collectAgent(out)
	collectServer(out, s)
	for i, w := range s.Workers {
		collectWorker(out, strconv.Itoa(i), w)
	}
	if c.state.accept != nil {
		collectAccept(out, c.state.accept)
	}
	collectTable(out, s, c.state.inForce.Load())
	collectDelays(out, c.state, s)
	if c.state.network != nil {
		collectNetwork(out, c.state.network.Stats())
	}
	if c.state.watch != nil {
		collectWatch(out, c.state.watch())
		collectReport(out, c.state.report())
	}
}

func (c *collector) collectAgent(out sink) {
	draining := c.state.draining.Load()
	out.gauge(mReady, truth(c.state.ready.Load() && !draining))
	out.gauge(mDraining, truth(draining))
	out.counter(mUpdates, c.state.updates.Load())
	out.counter(mSourceErrors, c.state.sourceErrors.Load())
	out.gauge(mBuild, 1, c.build.Version, c.build.Commit, c.build.Go)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func collectServer(out sink, s l7.Stats) {
	for i, n := range s.Unmatched {
		out.counter(mUnmatched, n, statusClasses[i])
	}
	for reason, n := range s.Refused {
		out.counter(mRefused, n, reason)
	}
	dropped := s.LogLost
	for _, w := range s.Workers {
		dropped += w.LogDropped
	}
	out.counter(mLogDropped, dropped)
}

func collectWorker(out sink, id string, w l7.WorkerStats) {
	for _, m := range []struct {
		desc  *prometheus.Desc
		value uint64
	}{
		{mConnections, w.Connections}, {mActive, w.Active}, {mUpstreamOpen, w.UpstreamOpen},
		{mUpstreamIdle, w.UpstreamIdle}, {mBuffers, w.BufferBytes},
	} {
		out.gauge(m.desc, float64(m.value), id)
	}
	for _, m := range []struct {
		desc  *prometheus.Desc
		value uint64
	}{
		{mAccepted, w.Accepted}, {mRequests, w.Requests}, {mBytesIn, w.BytesIn}, {mBytesOut, w.BytesOut},
		{mTurns, w.Turns}, {mEvents, w.Events}, {mAcceptPaused, w.AcceptPaused},
		{mEvicted, w.Evicted},
	} {
		out.counter(m.desc, m.value, id)
	}
	out.gauge(mLastTurn, float64(w.LastTurnMilli)/1000, id)
}

// collectTable shows f, nil before the first table.
func collectTable(out sink, s l7.Stats, f *inForce) {
	if f == nil {
		f = new(inForce)
	}
	out.gauge(mTableVersion, float64(s.TableVersion))
	out.counter(mTableSwaps, s.TableSwaps)
	out.gauge(mTableBuild, f.built.Seconds())
	out.gauge(mTableRoutes, float64(f.Routes))
	out.gauge(mTableHosts, float64(f.Hosts))
	out.gauge(mTableClusters, float64(f.Clusters))
	out.gauge(mTableIngresses, float64(f.Ingresses))
	var notices [k8s.Error + 1]float64
	for _, n := range f.notices {
		notices[n.Severity]++
	}
	for severity, n := range notices {
		out.gauge(mNotices, n, k8s.Severity(severity).String())
	}
}

// sink makes metrics of values; labels are the values of those of d
type sink struct{ ch chan<- prometheus.Metric }

func (s sink) counter(d *prometheus.Desc, n uint64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func (s sink) histogram(d *prometheus.Desc, v l7.Durations, labels ...string) {
	s.ch <- constHistogram(d, v, labels...)
}

func (s sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}
