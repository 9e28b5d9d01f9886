package agent

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirproxy/weir/l7"
)

func TestAdminPages(t *testing.T) {
	s := sampleState(t, 1)
	h := newAdmin(s, sampleStats, func() {}, Build{}, discard()).handler()
	for _, tt := range []struct {
		method, page string
		status       int
		contains     string
	}{
		{"GET", "/", 200, "/debug/table"},
		{"HEAD", "/", 200, ""},
		{"GET", "/metrics", 200, "go_goroutines"},
		{"GET", "/metrics", 200, "process_open_fds"},
		{"GET", "/healthz", 200, "ok"},
		{"GET", "/debug/table", 200, `"address": "10.0.0.1:8080"`},
		{"GET", "/debug/workers", 200, `"LastTurnMilli": 14500`},
		{"GET", "/debug/notices", 200, `"message": "is bad"`},
		{"GET", "/debug/pprof/", 200, "goroutine"},
		{"GET", "/debug/pprof/cmdline", 200, "agent"},
		{"GET", "/debug/pprof/heap?debug=1", 200, "heap profile"},
		{"GET", "/nothing", 404, ""},
		{"GET", "/debug/", 404, ""},
		{"POST", "/metrics", 405, ""},
		{"DELETE", "/", 405, ""},
		{"PUT", "/nothing", 405, ""},
		{"POST", "/debug/pprof/symbol", 405, ""},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tt.method, tt.page, nil))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.contains) {
			t.Errorf("%s %s = %d, want %d and %q in the body; got:\n%.300s", tt.method, tt.page, w.Code, tt.status, tt.contains, w.Body)
		}
		if tt.status == 405 && w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s %s: Allow = %q", tt.method, tt.page, w.Header().Get("Allow"))
		}
	}
}

func TestDebugWorkersNamesStatusClasses(t *testing.T) {
	var v struct {
		TableVersion uint64
		Unmatched    map[string]uint64
		Workers      []l7.WorkerStats
	}
	body := get(t, new(state), sampleStats, "/debug/workers").Body.Bytes()
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	want := map[string]uint64{"none": 0, "1xx": 0, "2xx": 0, "3xx": 0, "4xx": 31, "5xx": 0}
	if !maps.Equal(v.Unmatched, want) || v.TableVersion != 7 || len(v.Workers) != 2 {
		t.Errorf("unmatched %v, table %d, %d workers; want %v, 7, 2", v.Unmatched, v.TableVersion, len(v.Workers), want)
	}
}

// The default mux belongs to whoever imports a package; nothing of it may show.
func TestAdminDoesNotServeTheDefaultMux(t *testing.T) {
	http.HandleFunc("/of-the-default-mux", func(http.ResponseWriter, *http.Request) {})
	w := httptest.NewRecorder()
	newAdmin(new(state), sampleStats, func() {}, Build{}, discard()).handler().
		ServeHTTP(w, httptest.NewRequest("GET", "/of-the-default-mux", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("GET of a page of the default mux = %d, want 404", w.Code)
	}
}

func TestDebugTableShowsWhatIsInForce(t *testing.T) {
	var v TableView
	body := get(t, sampleState(t, 2), sampleStats, "/debug/table").Body
	if err := json.Unmarshal(body.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	if v.Version != 7 || len(v.Hosts) != 2 || len(v.Clusters) != 2 {
		t.Fatalf("version %d, %d hosts, %d clusters; want 7, 2, 2", v.Version, len(v.Hosts), len(v.Clusters))
	}
	r := v.Hosts[1].Routes[0]
	if r.Path != "/" || r.Kind != "Prefix" || r.Source != "shop/ingress-1" || r.Cluster != "shop/service-1:80" ||
		r.Policy.Tries != 3 || r.Policy.Balance != "round_robin" || !slices.Equal(r.Policy.RetryOn, []string{"error", "timeout"}) {
		t.Errorf("route = %+v", r)
	}
	c := v.Clusters["shop/service-1:80"]
	if len(c.Active) != 2 || c.Active[0] != (EndpointView{Address: "10.0.0.1:8080", Node: "node-a", Zone: "z1"}) ||
		len(c.Draining) != 1 || c.Draining[0].Address != "10.0.0.3:8080" {
		t.Errorf("cluster = %+v", c)
	}
}

func TestDebugPagesBeforeTheFirstTable(t *testing.T) {
	for page, want := range map[string]string{"/debug/notices": "[]\n", "/debug/table": `"hosts": []`} {
		if got := get(t, new(state), sampleStats, page).Body.String(); !strings.Contains(got, want) {
			t.Errorf("GET %s before the first table = %s, want %s in it", page, got, want)
		}
	}
}

func TestReadyz(t *testing.T) {
	s := new(state)
	h := newAdmin(s, sampleStats, func() {}, Build{}, discard()).handler()
	check := func(when string, status int, want string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		if w.Code != status || w.Body.String() != want {
			t.Errorf("%s: /readyz = %d %q, want %d %q", when, w.Code, w.Body, status, want)
		}
	}
	check("before the first table", 503, "waiting for the first full table\n")
	s.ready.Store(true)
	check("with a table", 200, "ready\n")
	s.draining.Store(true)
	check("while draining", 503, "draining\n")
}

func TestHealthzTellsSleepingFromStuckWorkers(t *testing.T) {
	for _, tt := range []struct {
		name     string
		ages     []time.Duration // of the last turn of each worker
		turns    []bool          // when woken
		ready    bool
		draining bool
		status   int
		body     string
		wakes    int
	}{
		{"all turned lately", []time.Duration{0, 9 * time.Second}, []bool{false, false}, true, false, 200, "ok\n", 0},
		{"one sleeps", []time.Duration{0, time.Minute}, []bool{false, true}, true, false, 200, "ok\n", 1},
		{"one is stuck", []time.Duration{time.Minute, time.Minute}, []bool{true, false}, true, false, 503, "workers [1] do not turn their loop\n", 1},
		{"loops end one by one", []time.Duration{time.Hour}, []bool{false}, true, true, 200, "ok\n", 0},
		{"not running yet", []time.Duration{time.Hour}, []bool{false}, false, false, 200, "ok\n", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			last := make([]time.Time, len(tt.ages))
			for i, age := range tt.ages {
				last[i] = time.Now().Add(-age)
			}
			stats := func() (s l7.Stats) {
				for _, at := range last {
					s.Workers = append(s.Workers, l7.WorkerStats{LastTurnMilli: at.UnixMilli()})
				}
				return s
			}
			wakes := 0
			wake := func() {
				wakes++
				for i := range last {
					if tt.turns[i] {
						last[i] = time.Now()
					}
				}
			}
			s := new(state)
			s.ready.Store(tt.ready)
			s.draining.Store(tt.draining)
			w := httptest.NewRecorder()
			start := time.Now()
			newAdmin(s, stats, wake, Build{}, discard()).handler().ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
			if w.Code != tt.status || w.Body.String() != tt.body || wakes != tt.wakes {
				t.Errorf("%s: /healthz = %d %q after %d wakes, want %d %q, %d", tt.name, w.Code, w.Body, wakes, tt.status, tt.body, tt.wakes)
			}
			if took := time.Since(start); took > turnWait {
				t.Errorf("%s: /healthz took %s, want at most %s", tt.name, took, turnWait)
			}
		})
	}
}
