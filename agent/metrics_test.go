package agent

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/l7"
	"github.com/weirproxy/weir/l7/route"
)

// sampleState is a table of n routes, each with its own cluster, in use by two
// workers.
func sampleState(tb testing.TB, n int) *state {
	tb.Helper()
	policy := route.DefaultPolicy()
	f := &inForce{built: 1500 * time.Microsecond, since: time.Unix(1000, 0)}
	var hosts []route.VirtualHost
	for i := range n {
		host, source := fmt.Sprintf("host-%d.example", i), fmt.Sprintf("shop/ingress-%d", i)
		c := route.NewCluster(fmt.Sprintf("shop/service-%d:80", i), 2)
		c.SetEndpoints(route.Listing{Tiers: [][]route.Endpoint{{{Addr: addr("10.0.0.1:8080"), Node: "node-a", Zone: "z1"}, {Addr: addr("10.0.0.2:8080")}}},
			Draining: []route.Endpoint{{Addr: addr("10.0.0.3:8080")}}, Lost: []route.Endpoint{{Addr: addr("10.0.0.4:8080")}}})
		r := &route.Route{Host: host, Path: "/", Kind: route.Prefix, Source: source, Cluster: c, Policy: &policy,
			Stats: route.NewRouteStats(host, source, 2)}
		for w := range 2 {
			use(r, w)
		}
		hosts = append(hosts, route.VirtualHost{Name: host, Routes: []*route.Route{r}})
		f.RouteStats = append(f.RouteStats, r.Stats)
		f.ClusterList = append(f.ClusterList, c)
	}
	table, err := route.NewTable(7, hosts)
	if err != nil {
		tb.Fatal(err)
	}
	f.Table, f.Routes, f.Hosts, f.Clusters, f.Ingresses = table, n, n, n, n
	f.notices = []k8s.Notice{{Severity: k8s.Error, Kind: "Ingress", Namespace: "shop", Name: "x", Reason: "Bad", Message: "is bad"}}
	s := new(state)
	s.inForce.Store(f)
	return s
}

// use counts some traffic of worker w.
func use(r *route.Route, w int) {
	s := &r.Stats.Shards[w]
	for class := range s.Status {
		s.Status[class].Add(uint64(class + 1))
	}
	s.Latency.Observe(700)        // in the second bucket
	s.Latency.Observe(20_000_000) // above all
	c := &r.Cluster.Stats.Shards[w]
	for i, counter := range []*route.Counter{&c.Opened, &c.Reused, &c.ConnectErrors, &c.Retries, &c.BudgetEmpty,
		&c.Cancelled, &c.Ejections, &c.Abandoned, &c.NoEndpoint} {
		counter.Add(uint64(10 + i))
	}
	c.Wait.Observe(0)
	c.FirstByte.Observe(3000)
}

func sampleStats() l7.Stats {
	return l7.Stats{
		TableVersion: 7, TableSwaps: 3, LogLost: 1000,
		Workers: []l7.WorkerStats{
			{Connections: 1, Active: 2, UpstreamOpen: 3, UpstreamIdle: 4, Accepted: 5, Requests: 6, Turns: 7, Events: 8,
				BytesIn: 9, BytesOut: 10, LogDropped: 11, AcceptPaused: 12, Evicted: 14, BufferBytes: 13, LastTurnMilli: 14_500},
			{LogDropped: 100},
		},
		Refused:   map[string]uint64{"no_host": 21},
		Unmatched: [6]uint64{0, 0, 0, 0, 31, 0},
	}
}

// get asks an admin server for a page.
func get(t *testing.T, s *state, stats func() l7.Stats, page string) *httptest.ResponseRecorder {
	t.Helper()
	a := newAdmin(s, stats, func() {}, Build{Version: "v1", Commit: "abc", Go: "go0"}, discard())
	w := httptest.NewRecorder()
	a.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, page, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("GET %s = %d: %s", page, w.Code, w.Body)
	}
	return w
}

// scrape returns the lines of /metrics that begin with "weir_".
func scrape(t *testing.T, s *state, stats func() l7.Stats) []string {
	t.Helper()
	w := get(t, s, stats, "/metrics")
	var out []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "weir_") {
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	return out
}

func TestMetricsAddUpTheWorkers(t *testing.T) {
	s := sampleState(t, 1)
	s.ready.Store(true)
	s.updates.Add(4)
	got := scrape(t, s, sampleStats)
	const r = `{host="host-0.example",ingress="shop/ingress-0"`
	const c = `{cluster="shop/service-0:80",protocol="http/1.1"`
	for _, want := range []string{
		`weir_route_requests_total` + r + `,status="none"} 2`,
		`weir_route_requests_total` + r + `,status="1xx"} 4`,
		`weir_route_requests_total` + r + `,status="2xx"} 6`,
		`weir_route_requests_total` + r + `,status="5xx"} 12`,
		`weir_route_latency_seconds_bucket` + r + `,le="0.0005"} 0`,
		`weir_route_latency_seconds_bucket` + r + `,le="0.001"} 2`,
		`weir_route_latency_seconds_bucket` + r + `,le="10"} 2`,
		`weir_route_latency_seconds_bucket` + r + `,le="+Inf"} 4`,
		`weir_route_latency_seconds_sum` + r + `} 40.0014`,
		`weir_route_latency_seconds_count` + r + `} 4`,
		`weir_route_unmatched_requests_total{status="4xx"} 31`,
		`weir_upstream_connections_opened_total` + c + `} 20`,
		`weir_upstream_connections_reused_total` + c + `} 22`,
		`weir_upstream_connect_errors_total` + c + `} 24`,
		`weir_upstream_retries_total` + c + `} 26`,
		`weir_upstream_retry_budget_exhausted_total` + c + `} 28`,
		`weir_upstream_cancellations_total` + c + `} 30`,
		`weir_upstream_ejections_total` + c + `} 32`,
		`weir_upstream_abandoned_total` + c + `} 34`,
		`weir_upstream_no_endpoint_total` + c + `} 36`,
		`weir_upstream_connection_wait_seconds_count` + c + `} 2`,
		`weir_upstream_first_byte_seconds_sum` + c + `} 0.006`,
		`weir_upstream_endpoints{cluster="shop/service-0:80",state="active"} 2`,
		`weir_upstream_endpoints{cluster="shop/service-0:80",state="draining"} 1`,
		`weir_upstream_endpoints{cluster="shop/service-0:80",state="lost"} 1`,
		`weir_worker_connections{worker="0"} 1`,
		`weir_worker_active_exchanges{worker="0"} 2`,
		`weir_worker_upstream_connections{worker="0"} 3`,
		`weir_worker_upstream_idle_connections{worker="0"} 4`,
		`weir_worker_accepted_connections_total{worker="0"} 5`,
		`weir_worker_requests_total{worker="0"} 6`,
		`weir_worker_turns_total{worker="0"} 7`,
		`weir_worker_events_total{worker="0"} 8`,
		`weir_worker_received_bytes_total{worker="0"} 9`,
		`weir_worker_sent_bytes_total{worker="0"} 10`,
		`weir_worker_accept_pauses_total{worker="0"} 12`,
		`weir_worker_upstream_evictions_total{worker="0"} 14`,
		`weir_worker_buffer_bytes{worker="0"} 13`,
		`weir_worker_last_turn_timestamp_seconds{worker="0"} 14.5`,
		`weir_worker_connections{worker="1"} 0`,
		`weir_http_refusals_total{reason="no_host"} 21`,
		`weir_access_log_dropped_lines_total 1111`,
		`weir_table_version 7`, `weir_table_swaps_total 3`, `weir_table_build_seconds 0.0015`,
		`weir_table_routes 1`, `weir_table_hosts 1`, `weir_table_clusters 1`, `weir_table_ingresses 1`,
		`weir_source_notices{severity="error"} 1`, `weir_source_notices{severity="info"} 0`,
		`weir_source_updates_total 4`, `weir_source_errors_total 0`,
		`weir_agent_ready 1`, `weir_agent_draining 0`,
		`weir_build_info{commit="abc",go_version="go0",version="v1"} 1`,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

func TestUnusedRoutesHaveNoSeries(t *testing.T) {
	s := sampleState(t, 1)
	f := s.inForce.Load()
	f.RouteStats[0] = route.NewRouteStats("idle.example", "shop/idle", 2)
	for _, line := range scrape(t, s, sampleStats) {
		if strings.Contains(line, "shop/idle") {
			t.Errorf("/metrics has %s, want no series of a route that was never used", line)
		}
	}
}

// A pedantic registry refuses what contradicts itself; the parser and the linter
// know the text format and the conventions for names and units.
func TestMetricsFollowTheConventions(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(&collector{state: sampleState(t, 2), stats: sampleStats, build: Build{}})
	if _, err := r.Gather(); err != nil {
		t.Error(err)
	}
	s := sampleState(t, 2)
	s.inForce.Load().RouteStats[1].Source = "odd\"\n\\name"
	page := get(t, s, sampleStats, "/metrics").Body.String()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	own, seen := 0, map[string]bool{}
	for name, f := range families {
		if !strings.HasPrefix(name, "weir_") {
			continue
		}
		own++
		for _, m := range f.Metric {
			key := name
			for _, l := range m.Label {
				key += "|" + l.GetName() + "=" + l.GetValue()
			}
			if seen[key] {
				t.Errorf("series %s is there twice", key)
			}
			seen[key] = true
		}
	}
	if own < 40 {
		t.Errorf("%d metrics on the page, want all of them", own)
	}
	if want := "weir_route_latency_seconds|host=host-1.example|ingress=odd\"\n\\name"; !seen[want] {
		t.Errorf("no series %s", want)
	}
	problems, err := promlint.New(strings.NewReader(page)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestMetricsBeforeTheFirstTable(t *testing.T) {
	got := scrape(t, new(state), func() l7.Stats { return l7.Stats{} })
	for _, want := range []string{"weir_table_version 0", "weir_agent_ready 0", `weir_source_notices{severity="error"} 0`} {
		if !slices.Contains(got, want) {
			t.Errorf("/metrics before the first table lacks %s", want)
		}
	}
}

// 5,000 routes and clusters, all in use: 330,000 lines. Run with -benchtime 20x.
func BenchmarkScrape(b *testing.B) {
	for _, n := range []int{100, 5000} {
		b.Run(fmt.Sprint("routes=", n), func(b *testing.B) {
			a := newAdmin(sampleState(b, n), sampleStats, func() {}, Build{}, discard())
			h := a.handler()
			b.ReportAllocs()
			for b.Loop() {
				w := &discardResponse{header: http.Header{}}
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
				if w.status != 0 && w.status != http.StatusOK {
					b.Fatalf("GET /metrics = %d", w.status)
				}
			}
		})
	}
}

// discardResponse is a response that nobody reads.
type discardResponse struct {
	header http.Header
	status int
}

func (d *discardResponse) Header() http.Header         { return d.header }
func (d *discardResponse) WriteHeader(status int)      { d.status = status }
func (d *discardResponse) Write(b []byte) (int, error) { return io.Discard.Write(b) }

// The client library needs some 240 allocations for a route and its cluster.
func TestScrapeHardlyAllocates(t *testing.T) {
	h := newAdmin(sampleState(t, 1000), sampleStats, func() {}, Build{}, discard()).handler()
	n := testing.AllocsPerRun(5, func() {
		h.ServeHTTP(&discardResponse{header: http.Header{}}, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	})
	if n > 8000 {
		t.Errorf("a scrape of 1,000 routes makes %.0f allocations, want at most 8,000", n)
	}
}
