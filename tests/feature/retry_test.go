package feature

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weirproxy/weir/tests/rig"
)

// resetting reads a whole request, so that it may have been executed, and resets.
func resetting(x *rig.Exchange) {
	x.ReadBody()
	x.Reset()
}

// TestTriesOfARequest: five endpoints that all reset. Each one is tried once at
// most.
func TestTriesOfARequest(t *testing.T) {
	const next, tries = "proxy-next-upstream", "proxy-next-upstream-tries"
	for _, c := range []struct {
		name     string
		settings settings
		method   string
		want     int
	}{
		{"GET", nil, "GET", 3},
		{"HEAD", nil, "HEAD", 3},
		{"PUT is repeated with its body", nil, "PUT", 3},
		{"DELETE", nil, "DELETE", 3},
		{"POST is sent once", nil, "POST", 1},
		{"PATCH is sent once", nil, "PATCH", 1},
		{"two tries", settings{tries: "2"}, "GET", 2},
		{"one try", settings{tries: "1"}, "GET", 1},
		{"as many as there are endpoints", settings{tries: "0"}, "GET", 5},
		{"POST with non_idempotent", settings{next: "error timeout non_idempotent"}, "POST", 3},
		{"non_idempotent with two tries", settings{next: "error non_idempotent", tries: "2"}, "POST", 2},
		{"off", settings{next: "off"}, "GET", 1},
		{"no error among the conditions", settings{next: "timeout"}, "GET", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPool(t, 5, c.settings)
			p.handle(resetting)
			body := "once upon a time"
			if c.method == "GET" || c.method == "HEAD" {
				body = ""
			}
			if m := rig.Do(t, p.Addr, c.method, post(c.method, "/", body)); m.Status != 502 {
				t.Errorf("%s -> %d, want 502", c.method, m.Status)
			}
			sum := 0
			for i, b := range p.backends {
				for _, r := range b.Requests() {
					if string(r.Body) != body || r.Line() != c.method+" /" {
						t.Errorf("endpoint %d got %s %q, want %s / %q", i, r.Line(), r.Body, c.method, body)
					}
				}
				sum += len(b.Requests())
			}
			if hits := p.hits(); sum != c.want || slices.Max(hits) > 1 {
				t.Errorf("%s: tries by endpoint %v, want %d on distinct ones", c.method, hits, c.want)
			}
		})
	}
}

// TestARetrySucceeds: one of three endpoints works.
func TestARetrySucceeds(t *testing.T) {
	p := newPool(t, 3, nil)
	p.handle(resetting)
	p.backends[2].Handle(nil)
	for i := range 6 {
		if m := rig.Do(t, p.Addr, "GET", rig.Get(host, "/")); m.Status != 200 || string(m.Body) != "b2" {
			t.Errorf("GET %d -> %d %q, want 200 from b2", i, m.Status, m.Body)
		}
	}
	if hits := p.hits(); hits[0] == 0 || hits[1] == 0 || hits[2] != 6 {
		t.Errorf("tries by endpoint: %v, want all of them tried and 6 answers from the last", hits)
	}
}

// TestARefusedConnectRepeatsAPost: nothing of it can have been executed.
func TestARefusedConnectRepeatsAPost(t *testing.T) {
	good := rig.NewRecorder(t, "good")
	objects := service(nil, rig.Free(t), rig.Free(t), good.Addr)
	a := rig.StartAgent(t, objects, "--workers", "1")
	a.IdleAtEnd()
	for i := range 3 { // whichever comes first
		id := fmt.Sprintf("id-%d", i)
		if m := rig.Do(t, a.Addr, "POST", post("POST", "/"+id, id)); m.Status != 200 {
			t.Errorf("POST %d -> %d, want 200", i, m.Status)
		}
		if r := good.Last(t); string(r.Body) != id {
			t.Errorf("POST %d: body %q at the endpoint, want %q", i, r.Body, id)
		}
	}
	if n := len(good.Requests()); n != 3 {
		t.Errorf("the endpoint got %d requests, want 3", n)
	}
	if n := a.Metric("weir_upstream_connect_errors_total"); n == 0 {
		t.Error("no connect was refused: nothing was repeated")
	}
}

func TestOffEndsARefusedConnectToo(t *testing.T) {
	good := rig.NewRecorder(t, "good")
	a := rig.StartAgent(t, service(settings{"proxy-next-upstream": "off"}, rig.Free(t), good.Addr), "--workers", "1")
	a.IdleAtEnd()
	var statuses []int
	for range 2 { // the second finds the refused endpoint ejected, or is the first to meet it
		statuses = append(statuses, rig.Do(t, a.Addr, "GET", rig.Get(host, "/")).Status)
	}
	if !slices.Contains(statuses, 502) || !slices.Contains(statuses, 200) {
		t.Errorf("statuses %v, want one 502 and one 200", statuses)
	}
}

func TestAllRefusedGives502(t *testing.T) {
	a := rig.StartAgent(t, service(nil, rig.Free(t), rig.Free(t)), "--workers", "1")
	a.IdleAtEnd()
	if m := rig.Do(t, a.Addr, "POST", post("POST", "/", "hello")); m.Status != 502 {
		t.Errorf("POST -> %d, want 502", m.Status)
	}
}
