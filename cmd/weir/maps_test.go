package main

import (
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/agent"
)

func TestMapsArePrinted(t *testing.T) {
	v := agent.MapsView{
		Policy: "least-loaded",
		Workers: []agent.WorkerMap{
			{Worker: 0, Connections: 12, Active: 3, Accepted: 4711, Reserved: 1, State: "awake", Turn: 1250 * time.Microsecond},
			{Worker: 1, Connections: 11, Accepted: 4640, State: "idle", Turn: 3 * time.Second},
			{Worker: 2, Connections: 500, Accepted: 501, State: "full", Turn: 400 * time.Microsecond},
		},
		CPUs: []int{1, 0, 1, -1},
		Listeners: []agent.ListenerMap{
			{Address: netip.MustParseAddrPort("0.0.0.0:80"), Workers: []int{0, 1, 2}},
			{Address: netip.MustParseAddrPort("[::]:80"), Workers: []int{0, 2}},
		},
		Decisions: []agent.DecisionsMap{{Reason: "cpu", Count: 0}, {Reason: "local", Count: 4000}, {Reason: "least_loaded", Count: 5852}},
	}
	for _, format := range []string{"text", "json"} {
		var b strings.Builder
		if err := show(&b, format, v, func(w io.Writer) { printMaps(w, v) }); err != nil {
			t.Fatal(err)
		}
		golden(t, "maps-"+format, b.String())
	}
}

func TestCheckIsPrinted(t *testing.T) {
	r := agent.CheckReport{Items: []agent.CheckItem{
		{Name: "kernel", Grade: "ok", Found: "Linux 6.1.0", Means: "has everything that is used"},
		{Name: "ports", Grade: "no", Found: "no CAP_NET_BIND_SERVICE", Means: "only ports from 1024 on can be bound"},
		{Name: "net.core.somaxconn", Grade: "less", Found: "128", Means: "128 connections may wait at a socket to be accepted"},
	}}
	for _, format := range []string{"text", "json"} {
		var b strings.Builder
		if err := printCheck(&b, format, r); err != errNo {
			t.Errorf("%s: error %v of a node that is not fit, want the answer no", format, err)
		}
		golden(t, "check-"+format, b.String())
	}
	r.Fit = true
	if err := printCheck(&strings.Builder{}, "text", r); err != nil {
		t.Errorf("error %v of a node that is fit, want none", err)
	}
}

func TestCheckOfThisNode(t *testing.T) {
	code, stdout, stderr := weir("check", "-o", "json")
	if stderr != "" || !strings.Contains(stdout, `"name": "kernel"`) || code != 0 && code != exitNo {
		t.Errorf("exit code %d, output %s, errors %s", code, stdout, stderr)
	}
}
