package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirproxy/weir/agent/netwatch"
	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/l7/route"
)

func TestALostEndpointReachesTheDataPath(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "site.yaml", site)
	put(t, dir, "endpoints.yaml", strings.Replace(endpoints("10.0.0.1", 8080), "endpoints: [", "endpoints: [{addresses: [10.0.0.2]}, ", 1))
	s := new(state)
	r := &recorder{onCall: func() {}}
	var lost netip.Addr
	tables := newTables(k8s.Options{Workers: 1, Lost: func(a netip.Addr) uint64 {
		if a == lost {
			return 1
		}
		return 0
	}}, r, s, discard())
	told := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("192.0.2.1")}
	tables.applyLost(told)
	if len(r.calls) != 0 || tables.started() {
		t.Errorf("before the first table: calls %q", r.calls)
	}
	tables.apply(load(t, dir))
	step := func(what string, calls []string, active, gone int) {
		t.Helper()
		r.calls = nil
		tables.applyLost(told)
		set := s.inForce.Load().ClusterList[0].Endpoints()
		if !slices.Equal(r.calls, calls) || len(set.Active) != active || len(set.Lost) != gone {
			t.Errorf("%s: calls %q, %d active, %d lost; want %q, %d, %d", what, r.calls, len(set.Active), len(set.Lost), calls, active, gone)
		}
	}
	step("nothing is lost", nil, 2, 0)
	lost = told[0]
	step("one is lost", []string{"endpoints"}, 1, 1)
	step("it is told again", nil, 1, 1)
	lost = netip.Addr{}
	step("it is found", []string{"endpoints"}, 2, 0)
	if f := s.inForce.Load(); s.updates.Load() != 1 || f.Table == nil || f.Routes != 1 {
		t.Errorf("%d updates, table %v, %d routes; want 1 and those of the first table", s.updates.Load(), f.Table, f.Routes)
	}
}

func TestWithoutTheNetworkTheAgentSaysSoOnceAndTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		ctx, stop := context.WithCancel(t.Context())
		errs := []error{errors.New("not permitted"), errors.New("not permitted"), errors.New("no memory")}
		start := time.Now()
		followNetwork(ctx, func(context.Context) error {
			if len(errs) == 0 {
				stop()
				return nil
			}
			err := errs[0]
			errs = errs[1:]
			return err
		}, slog.New(slog.NewTextHandler(&out, nil)))
		text := out.String()
		if strings.Count(text, "level=WARN") != 2 || strings.Count(text, "not permitted") != 1 || strings.Count(text, "no memory") != 1 {
			t.Errorf("logged %q, want one warning for each reason", text)
		}
		if took := time.Since(start); took != 3*networkRetry {
			t.Errorf("three attempts in vain took %v, want %v", took, 3*networkRetry)
		}
	})
}

func TestNetworkMetrics(t *testing.T) {
	s := sampleState(t, 1)
	for _, line := range scrape(t, s, sampleStats) {
		if strings.HasPrefix(line, "weir_network_") {
			t.Errorf("%s without a watch of the network", line)
		}
	}
	s.network = netwatch.New(func([]netip.Addr) {})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	has := func(want string) bool { return slices.Contains(scrape(t, s, sampleStats), want) }
	for _, want := range []string{"weir_network_watching 0", "weir_network_pods 0", "weir_network_pods_lost 0",
		"weir_network_losses_total 0", "weir_network_events_total 0", "weir_network_overflows_total 0"} {
		if !has(want) {
			t.Errorf("before it runs: no %q", want)
		}
	}
	go func() { done <- s.network.Run(ctx) }()
	deadline := time.Now().Add(10 * time.Second)
	for !has("weir_network_watching 1") {
		if time.Now().After(deadline) {
			t.Fatal("it runs, and weir_network_watching is not 1")
		}
	}
	if link := s.linkOf(netip.MustParseAddr("127.0.0.1")); link != "lo" {
		t.Errorf("127.0.0.1 is behind %q, want lo", link)
	}
	stop()
	if err := <-done; err != nil || !has("weir_network_watching 0") {
		t.Errorf("it ended with %v; want no error and weir_network_watching 0", err)
	}
}

func TestDebugTableShowsWhatIsNearLocalAndLost(t *testing.T) {
	s := sampleState(t, 1)
	c := s.inForce.Load().ClusterList[0]
	c.SetEndpoints(route.Listing{
		Tiers: [][]route.Endpoint{{{Addr: addr("10.0.0.9:80"), Node: "n1", Local: true}}, {{Addr: addr("10.0.0.1:80")}, {Addr: addr("10.0.0.2:80")}}},
		Lost:  []route.Endpoint{{Addr: addr("10.0.0.3:80"), Node: "n1", Local: true}},
	})
	var v TableView
	if err := json.Unmarshal(get(t, s, sampleStats, "/debug/table").Body.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	got := v.Clusters[c.Name]
	want := []EndpointView{
		{Address: "10.0.0.9:80", Node: "n1", Local: true, Tier: 1}, {Address: "10.0.0.1:80", Tier: 2}, {Address: "10.0.0.2:80", Tier: 2},
	}
	if !slices.Equal(got.Active, want) {
		t.Errorf("active %+v, want %+v", got.Active, want)
	}
	if want := []EndpointView{{Address: "10.0.0.3:80", Node: "n1", Local: true}}; !slices.Equal(got.Lost, want) {
		t.Errorf("lost %+v, want %+v", got.Lost, want)
	}
}
