package agent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/k8s/watch"
	"github.com/weirproxy/weir/l7"
	"github.com/weirproxy/weir/l7/route"
)

// collectWatch shows how each kind is followed.
func collectWatch(out sink, s watch.Stats) {
	for _, k := range s.Kinds {
		out.gauge(mWatchObjects, float64(k.Objects), k.Kind)
		out.counter(mWatchEvents, k.Events, k.Kind)
		out.counter(mWatchSyncs, k.Syncs, k.Kind)
		out.counter(mWatchErrors, k.Errors, k.Kind)
		out.gauge(mWatchSynced, truth(k.Synced), k.Kind)
		if !k.InStep.IsZero() {
			out.gauge(mWatchAge, time.Since(k.InStep).Seconds(), k.Kind)
		}
	}
}

// collectDelays shows how long changes take.
func collectDelays(out sink, s *state, server l7.Stats) {
	out.histogram(mInForce, read(&s.delays.endpoints), "endpoints")
	out.histogram(mInForce, read(&s.delays.objects), "objects")
	var all l7.Durations
	for _, w := range server.Workers {
		all.SumMicros += w.TakeOver.SumMicros
		for i, n := range w.TakeOver.Counts {
			all.Counts[i] += n
		}
	}
	out.histogram(mTakeOver, all)
}

func read(h *route.Histogram) l7.Durations {
	d := l7.Durations{SumMicros: h.Sum.Load()}
	for i := range d.Counts {
		d.Counts[i] = h.Count[i].Load()
	}
	return d
}

// constHistogram makes a metric of counts.
func constHistogram(d *prometheus.Desc, v l7.Durations, labels ...string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(route.LatencyBuckets))
	var total uint64
	for i, n := range v.Counts {
		total += n
		if i < len(route.LatencyBuckets) {
			buckets[float64(route.LatencyBuckets[i])/1e6] = total
		}
	}
	return prometheus.MustNewConstHistogram(d, total, float64(v.SumMicros)/1e6, buckets, labels...)
}
