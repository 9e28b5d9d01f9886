package agent

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/k8s/report"
	"github.com/weirproxy/weir/k8s/watch"
	"github.com/weirproxy/weir/l7"
)

// watched is a state with an API server, of which slices are not read yet.
func watched() *state {
	s := new(state)
	s.report = func() report.Stats { return report.Stats{} }
	s.watch = func() watch.Stats {
		return watch.Stats{Kinds: []watch.KindStats{
			{Kind: "Ingress", Objects: 7, Events: 6, Syncs: 5, Errors: 4, Synced: true, InStep: time.Now().Add(-time.Minute)},
			{Kind: "EndpointSlice", Failure: "endpointslices in the cluster: forbidden"},
		}}
	}
	return s
}

func TestReadyzSaysWhatIsMissing(t *testing.T) {
	a := newAdmin(watched(), sampleStats, func() {}, Build{}, discard())
	w := httptest.NewRecorder()
	a.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	want := "waiting for the first full table\nEndpointSlice is not read yet: endpointslices in the cluster: forbidden\n"
	if w.Code != http.StatusServiceUnavailable || w.Body.String() != want {
		t.Errorf("/readyz = %d %q, want 503 %q", w.Code, w.Body, want)
	}
}

func TestTheSourceIsShown(t *testing.T) {
	s := watched()
	s.delays.endpoints.Observe(3000)
	s.delays.objects.Observe(20_000_000)
	stats := func() l7.Stats {
		st := sampleStats()
		st.Workers[0].TakeOver.SumMicros, st.Workers[0].TakeOver.Counts[0] = 1000, 2
		st.Workers[1].TakeOver.SumMicros, st.Workers[1].TakeOver.Counts[len(st.Workers[1].TakeOver.Counts)-1] = 2000, 1
		return st
	}
	got := scrape(t, s, stats)
	for _, want := range []string{
		`weir_watch_objects{kind="Ingress"} 7`,
		`weir_watch_events_total{kind="Ingress"} 6`,
		`weir_watch_syncs_total{kind="Ingress"} 5`,
		`weir_watch_errors_total{kind="Ingress"} 4`,
		`weir_watch_synced{kind="Ingress"} 1`,
		`weir_watch_synced{kind="EndpointSlice"} 0`,
		`weir_change_in_force_seconds_bucket{change="endpoints",le="0.0025"} 0`,
		`weir_change_in_force_seconds_bucket{change="endpoints",le="0.005"} 1`,
		`weir_change_in_force_seconds_bucket{change="objects",le="10"} 0`,
		`weir_change_in_force_seconds_bucket{change="objects",le="+Inf"} 1`,
		`weir_change_in_force_seconds_sum{change="objects"} 20`,
		`weir_change_takeover_seconds_bucket{le="0.0005"} 2`,
		`weir_change_takeover_seconds_bucket{le="10"} 2`,
		`weir_change_takeover_seconds_count 3`,
		`weir_change_takeover_seconds_sum 0.003`,
	} {
		if !slices.Contains(got, want) {
			t.Errorf("/metrics lacks %s in\n%s", want, strings.Join(got, "\n"))
		}
	}
	ages := 0
	for _, line := range got {
		if strings.HasPrefix(line, "weir_watch_in_step_age_seconds{") {
			ages++
			if !strings.HasPrefix(line, `weir_watch_in_step_age_seconds{kind="Ingress"} 60.`) {
				t.Errorf("%s, want that of Ingress, a minute", line)
			}
		}
	}
	if ages != 1 {
		t.Errorf("%d kinds have an age, want one: the other was never in step", ages)
	}
	if page := get(t, s, stats, "/debug/source").Body.String(); !strings.Contains(page, `"Kind": "EndpointSlice"`) || !strings.Contains(page, "forbidden") {
		t.Errorf("/debug/source = %s", page)
	}
}

func TestAddressesThatEndpointsMustNotHave(t *testing.T) {
	c := Config{HTTPAddresses: []netip.AddrPort{addr("0.0.0.0:8080"), addr("[::]:0")}, AdminAddress: addr("10.0.0.1:9901")}
	for _, tt := range []struct{ host, want string }{
		{"https://192.0.2.1:6443", "192.0.2.1:6443"},
		{"https://192.0.2.1", "192.0.2.1:443"},
		{"https://[2001:db8::1]:6443/prefix", "[2001:db8::1]:6443"},
		{"https://[::ffff:192.0.2.1]:1", "192.0.2.1:1"},
	} {
		var o k8s.Options
		if err := c.reserve(&o, tt.host); err != nil {
			t.Errorf("%s: %v", tt.host, err)
		}
		if len(o.APIServers) != 1 || o.APIServers[0].String() != tt.want {
			t.Errorf("%s: API servers %v, want %s", tt.host, o.APIServers, tt.want)
		}
		if !slices.Equal(o.NodePorts, []uint16{8080, 9901}) {
			t.Errorf("%s: ports %v, want those that Weir listens on", tt.host, o.NodePorts)
		}
		if !slices.Contains(o.NodeAddresses, netip.MustParseAddr("127.0.0.1")) {
			t.Errorf("%s: addresses of the node %v lack those of its interfaces", tt.host, o.NodeAddresses)
		}
	}
	var o k8s.Options
	if err := c.reserve(&o, "https://name.invalid:6443"); err == nil || len(o.NodePorts) != 2 {
		t.Errorf("a name that nobody knows: %v, ports %v; want an error, and the ports", err, o.NodePorts)
	}
}

func TestAKubeconfigThatIsNoneEndsTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte("nonsense: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Config{
		{Kube: &Kube{Kubeconfig: path}},
		{Kube: &Kube{Kubeconfig: path + "none"}},
		{Kube: &Kube{Kubeconfig: path}, Manifests: t.TempDir()},
	} {
		c.HTTPAddresses, c.Workers = []netip.AddrPort{addr("127.0.0.1:0")}, 1
		if err := Run(t.Context(), c); err == nil {
			t.Errorf("Run(%+v) = nil, want an error", c.Kube)
		}
	}
}
