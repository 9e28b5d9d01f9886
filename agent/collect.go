package agent

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/l7"
	"github.com/weirproxy/weir/l7/route"
)

// protocol is what the endpoints are spoken to.
const protocol = "http/1.1"

// statusClasses are the values of the label status, by index of RouteShard.Status.
var statusClasses = [6]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx"}

// collector reads all counters when it is scraped.
type collector struct {
	state *state
	stats func() l7.Stats
	build Build
}

// Describe sends nothing: which series exist depends on the table.
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
	f := c.state.inForce.Load()
	collectTable(out, s, f)
	if f == nil {
		return
	}
	for _, r := range f.RouteStats {
		collectRoute(out, r)
	}
	for _, cluster := range f.ClusterList {
		collectCluster(out, cluster)
	}
}

func (c *collector) collectAgent(out sink) {
	draining := c.state.draining.Load()
	out.gauge(mReady, truth(c.state.ready.Load() && !draining))
	out.gauge(mDraining, truth(draining))
	out.counter(mUpdates, c.state.updates.Load())
	out.counter(mSourceErrors, c.state.sourceErrors.Load())
	out.gauge(mBuild, 1, "version", c.build.Version, "commit", c.build.Commit, "go_version", c.build.Go)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func collectServer(out sink, s l7.Stats) {
	for i, n := range s.Unmatched {
		out.counter(mUnmatched, n, "status", statusClasses[i])
	}
	for reason, n := range s.Refused {
		out.counter(mRefused, n, "reason", reason)
	}
	var dropped uint64
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
		out.gauge(m.desc, float64(m.value), "worker", id)
	}
	for _, m := range []struct {
		desc  *prometheus.Desc
		value uint64
	}{
		{mAccepted, w.Accepted}, {mRequests, w.Requests}, {mBytesIn, w.BytesIn}, {mBytesOut, w.BytesOut},
		{mTurns, w.Turns}, {mEvents, w.Events}, {mAcceptPaused, w.AcceptPaused},
	} {
		out.counter(m.desc, m.value, "worker", id)
	}
	out.gauge(mLastTurn, float64(w.LastTurnMilli)/1000, "worker", id)
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
		out.gauge(mNotices, n, "severity", k8s.Severity(severity).String())
	}
}

func collectRoute(out sink, r *route.RouteStats) {
	var status [6]uint64
	var latency histogram
	for i := range r.Shards {
		shard := &r.Shards[i]
		for class := range status {
			status[class] += shard.Status[class].Load()
		}
		latency.add(&shard.Latency)
	}
	for class, n := range status {
		if n > 0 {
			out.counter(mRouteRequests, n, "host", r.Host, "ingress", r.Source, "status", statusClasses[class])
		}
	}
	if !latency.empty() {
		out.histogram(mRouteLatency, &latency, "host", r.Host, "ingress", r.Source)
	}
}

func collectCluster(out sink, c *route.Cluster) {
	set := c.Endpoints()
	out.gauge(mUpEndpoints, float64(len(set.Active)), "cluster", c.Name, "state", "active")
	out.gauge(mUpEndpoints, float64(len(set.Draining)), "cluster", c.Name, "state", "draining")
	var wait, firstByte histogram
	counters := [...]struct {
		desc *prometheus.Desc
		of   func(*route.ClusterShard) *route.Counter
	}{
		{mUpOpened, func(s *route.ClusterShard) *route.Counter { return &s.Opened }},
		{mUpReused, func(s *route.ClusterShard) *route.Counter { return &s.Reused }},
		{mUpConnectErrors, func(s *route.ClusterShard) *route.Counter { return &s.ConnectErrors }},
		{mUpRetries, func(s *route.ClusterShard) *route.Counter { return &s.Retries }},
		{mUpBudget, func(s *route.ClusterShard) *route.Counter { return &s.BudgetEmpty }},
		{mUpCancelled, func(s *route.ClusterShard) *route.Counter { return &s.Cancelled }},
		{mUpEjections, func(s *route.ClusterShard) *route.Counter { return &s.Ejections }},
		{mUpAbandoned, func(s *route.ClusterShard) *route.Counter { return &s.Abandoned }},
		{mUpNoEndpoint, func(s *route.ClusterShard) *route.Counter { return &s.NoEndpoint }},
	}
	var sums [len(counters)]uint64
	for i := range c.Stats.Shards {
		shard := &c.Stats.Shards[i]
		for k := range counters {
			sums[k] += counters[k].of(shard).Load()
		}
		wait.add(&shard.Wait)
		firstByte.add(&shard.FirstByte)
	}
	for k, n := range sums {
		if n > 0 {
			out.counter(counters[k].desc, n, "cluster", c.Name, "protocol", protocol)
		}
	}
	if !wait.empty() {
		out.histogram(mUpWait, &wait, "cluster", c.Name, "protocol", protocol)
	}
	if !firstByte.empty() {
		out.histogram(mUpFirstByte, &firstByte, "cluster", c.Name, "protocol", protocol)
	}
}
