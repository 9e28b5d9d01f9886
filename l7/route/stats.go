package route

import "sync/atomic"

// LatencyBuckets are the upper bounds of the latency histograms, in
// microseconds; one more bucket takes what is above the last.
var LatencyBuckets = [...]uint32{
	500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 10_000_000,
}

// Counter is written by one worker and read by anybody.
type Counter struct{ v atomic.Uint64 }

func (c *Counter) Add(n uint64) { c.v.Add(n) }
func (c *Counter) Inc()         { c.v.Add(1) }
func (c *Counter) Load() uint64 { return c.v.Load() }

// Histogram counts durations; Sum is in microseconds.
type Histogram struct {
	Sum   Counter
	Count [len(LatencyBuckets) + 1]Counter
}

// Observe counts one duration in microseconds.
func (h *Histogram) Observe(us uint32) {
	i := 0
	for i < len(LatencyBuckets) && us > LatencyBuckets[i] {
		i++
	}
	h.Count[i].Inc()
	h.Sum.Add(uint64(us))
}

// RouteShard is what one worker counts for one route.
type RouteShard struct {
	// Status counts finished exchanges by class: [1] is 1xx (tunnels), [2] is
	// 2xx and so on; [0] counts those that ended without any status.
	Status  [6]Counter
	Latency Histogram // from the first byte of the request to the last of the answer
	_       [64]byte  // keeps shards of different workers off one cache line
}

// RouteStats are the counters of all routes that share host and source.
type RouteStats struct {
	Host   string // as in the rule; "" = any
	Source string // "namespace/name"
	Shards []RouteShard
}

// NewRouteStats returns counters for workers workers.
func NewRouteStats(host, source string, workers int) *RouteStats {
	return &RouteStats{Host: host, Source: source, Shards: make([]RouteShard, workers)}
}

// ClusterShard is what one worker counts for one cluster.
type ClusterShard struct {
	Opened        Counter   // connections established
	Reused        Counter   // requests sent on a pooled connection
	ConnectErrors Counter   // connects refused, unreachable or timed out
	Retries       Counter   // further tries, whatever the reason
	BudgetEmpty   Counter   // tries not made because the retry budget was spent
	Cancelled     Counter   // exchanges whose client went away first
	Ejections     Counter   // endpoints taken out of rotation after errors
	Abandoned     Counter   // tries given up because their endpoint disappeared
	NoEndpoint    Counter   // requests answered 503: nothing to send them to
	Wait          Histogram // for a connection: 0 if pooled, else until connected
	FirstByte     Histogram // from the request's last written byte to the first of the answer
	_             [64]byte
}

// ClusterStats are the counters of one cluster.
type ClusterStats struct{ Shards []ClusterShard }

// NewClusterStats returns counters for workers workers.
func NewClusterStats(workers int) *ClusterStats {
	return &ClusterStats{Shards: make([]ClusterShard, workers)}
}
