package agent

import (
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/prometheus/common/expfmt"

	"github.com/weirproxy/weir/l7/route"
)

// protocol is what the endpoints are spoken to.
const protocol = "http/1.1"

// chunk is how much of an exposition is written at once, bytes.
const chunk = 64 << 10

// metrics answers all metrics in Prometheus's text format. Those of routes and
// clusters, which may be hundreds of thousands of lines, are written here
// without a detour: with 5,000 of each the client library takes a second and
// 100 MB for what BenchmarkScrape shows.
func (a *admin) metrics(w http.ResponseWriter, _ *http.Request) {
	families, err := a.small.Gather()
	if err != nil {
		a.logger.Error("gather metrics", "err", err)
		text(w, http.StatusInternalServerError, "the metrics can't be gathered: see the log\n")
		return
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	w.Header().Set("Content-Type", string(format))
	e := exposition{w: w, b: make([]byte, 0, chunk+8<<10)}
	encoder := expfmt.NewEncoder(w, format)
	for _, f := range families {
		if err := encoder.Encode(f); err != nil {
			return // the client went away
		}
	}
	if f := a.state.inForce.Load(); f != nil {
		e.routes(f.RouteStats)
		e.clusters(f.ClusterList)
	}
	e.flush()
}

// family is a metric with all its series.
type family struct{ name, help, kind string }

// exposition writes families in the text format. After an error of w it writes
// nothing more.
type exposition struct {
	w      io.Writer
	b      []byte
	prefix []byte // of a histogram's buckets
	err    error
}

func (e *exposition) flush() {
	if e.err == nil && len(e.b) > 0 {
		_, e.err = e.w.Write(e.b)
	}
	e.b = e.b[:0]
}

// begin starts a family.
func (e *exposition) begin(f family) {
	e.b = append(e.b, "# HELP "+f.name+" "+f.help+"\n# TYPE "+f.name+" "+f.kind+"\n"...)
}

// line writes a series: name and suffix, labels without braces, and its value.
func (e *exposition) line(name, suffix, labels, extra string, value uint64) {
	e.open(name, suffix, labels, extra)
	e.b = strconv.AppendUint(e.b, value, 10)
	e.close()
}

func (e *exposition) open(name, suffix, labels, extra string) {
	e.b = append(e.b, name...)
	e.b = append(e.b, suffix...)
	e.b = append(e.b, '{')
	e.b = append(e.b, labels...)
	e.b = append(e.b, extra...)
	e.b = append(e.b, '}', ' ')
}

func (e *exposition) close() {
	e.b = append(e.b, '\n')
	if len(e.b) >= chunk {
		e.flush()
	}
}

// histogram writes the sum of some histograms, in seconds and cumulative; nothing
// if it is empty.
func (e *exposition) histogram(name, labels string, h *histogram) {
	if h.empty() {
		return
	}
	e.prefix = append(append(append(append(e.prefix[:0], name...), "_bucket{"...), labels...), `,le="`...)
	var total uint64
	for i, n := range h.counts {
		total += n
		e.b = append(append(e.b, e.prefix...), bounds[i]...)
		e.b = append(strconv.AppendUint(e.b, total, 10), '\n')
	}
	e.open(name, "_sum", labels, "")
	e.b = strconv.AppendFloat(e.b, float64(h.micros)/1e6, 'g', -1, 64)
	e.close()
	e.line(name, "_count", labels, "", total)
}

// bounds end the labels of the buckets.
var bounds = func() (out [len(route.LatencyBuckets) + 1]string) {
	for i, us := range route.LatencyBuckets {
		out[i] = strconv.FormatFloat(float64(us)/1e6, 'g', -1, 64) + `"} `
	}
	out[len(route.LatencyBuckets)] = `+Inf"} `
	return out
}()

// histogram is the sum of the histograms of all workers.
type histogram struct {
	micros uint64
	counts [len(route.LatencyBuckets) + 1]uint64
}

func (h *histogram) add(from *route.Histogram) {
	h.micros += from.Sum.Load()
	for i := range h.counts {
		h.counts[i] += from.Count[i].Load()
	}
}

func (h *histogram) empty() bool { return h.counts == [len(route.LatencyBuckets) + 1]uint64{} }

// routes writes the metrics of routes.
func (e *exposition) routes(list []*route.RouteStats) {
	labels := make([]string, len(list))
	for i, r := range list {
		labels[i] = `host="` + escape(r.Host) + `",ingress="` + escape(r.Source) + `"`
	}
	e.begin(routeRequests)
	for i, r := range list {
		var status [6]uint64
		for k := range r.Shards {
			for class := range status {
				status[class] += r.Shards[k].Status[class].Load()
			}
		}
		for class, n := range status {
			if n > 0 {
				e.line(routeRequests.name, "", labels[i], statusLabels[class], n)
			}
		}
	}
	e.begin(routeLatency)
	for i, r := range list {
		var h histogram
		for k := range r.Shards {
			h.add(&r.Shards[k].Latency)
		}
		e.histogram(routeLatency.name, labels[i], &h)
	}
}

var statusLabels = func() (out [6]string) {
	for class, name := range statusClasses {
		out[class] = `,status="` + name + `"`
	}
	return out
}()

// clusters writes the metrics of clusters.
func (e *exposition) clusters(list []*route.Cluster) {
	labels := make([]string, len(list))
	for i, c := range list {
		labels[i] = `cluster="` + escape(c.Name) + `"`
	}
	e.begin(upstreamEndpoints)
	for i, c := range list {
		set := c.Endpoints()
		e.line(upstreamEndpoints.name, "", labels[i], `,state="active"`, uint64(len(set.Active)))
		e.line(upstreamEndpoints.name, "", labels[i], `,state="draining"`, uint64(len(set.Draining)))
		e.line(upstreamEndpoints.name, "", labels[i], `,state="lost"`, uint64(len(set.Lost)))
	}
	for i := range labels {
		labels[i] += `,protocol="` + protocol + `"`
	}
	for _, f := range upstreamCounters {
		e.begin(f.family)
		for i, c := range list {
			var n uint64
			for k := range c.Stats.Shards {
				n += f.of(&c.Stats.Shards[k]).Load()
			}
			if n > 0 {
				e.line(f.name, "", labels[i], "", n)
			}
		}
	}
	for _, f := range upstreamHistograms {
		e.begin(f.family)
		for i, c := range list {
			var h histogram
			for k := range c.Stats.Shards {
				h.add(f.of(&c.Stats.Shards[k]))
			}
			e.histogram(f.name, labels[i], &h)
		}
	}
}

// escape writes s as a label's value has to be.
func escape(s string) string {
	if !slices.ContainsFunc([]byte(s), func(c byte) bool { return c == '\\' || c == '"' || c == '\n' }) {
		return s
	}
	var out []byte
	for _, c := range []byte(s) {
		switch c {
		case '\\', '"':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, '\\', 'n')
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
