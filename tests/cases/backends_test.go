package cases

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// seen returns nil if one of the last 20 shots came from each service.
func seen(shots []rig.Shot, services ...string) error {
	got := map[string]bool{}
	for _, s := range shots[max(0, len(shots)-20):] {
		got[s.Body] = true
	}
	for _, name := range services {
		if !got[name] {
			return fmt.Errorf("no answer from %s among the last 20: %v", name, got)
		}
	}
	return nil
}

// only returns nil if the last 40 shots came from these services alone and from
// each of them.
func only(shots []rig.Shot, services ...string) error {
	if len(shots) < 40 {
		return fmt.Errorf("only %d answers so far", len(shots))
	}
	got := map[string]int{}
	for _, s := range shots[len(shots)-40:] {
		got[s.Body]++
	}
	if len(got) != len(services) {
		return fmt.Errorf("answers came from %v, want %v", got, services)
	}
	for _, name := range services {
		if got[name] == 0 {
			return fmt.Errorf("answers came from %v, want %v", got, services)
		}
	}
	return nil
}

func TestCB56AStatusThatMayNotBeRetriedIsPassedOn(t *testing.T) {
	const problem = `{"error":"of the backend"}`
	pods, port := sameport(t, "p1", "p2")
	answer := func(status int) func(*rig.Exchange) {
		return func(x *rig.Exchange) { x.Answer(status, problem, "Content-Type: application/json") }
	}
	ingress := rig.Ingress("t1", "i", rig.R("n.example.test", "/", "Prefix", "s")).
		Annotate(rig.Nginx+"proxy-next-upstream", "error timeout http_500 http_502 http_503")
	a := rig.StartAgent(t, []rig.Object{rig.Service("t1", "s"),
		rig.Slice("t1", "s-1", "s", "", port, rig.Ready(ip(1), ip(2))...), ingress}, "--workers", "1")
	hits := func() int { return len(pods[0].Requests()) + len(pods[1].Requests()) }
	forget := func() { pods[0].Forget(); pods[1].Forget() }

	pods[0].Handle(answer(500))
	pods[1].Handle(answer(500))
	m := rig.Do(t, a.Addr, "POST", "POST / HTTP/1.1\r\nHost: n.example.test\r\nContent-Length: 2\r\n\r\nhi")
	if m.Status != 500 || string(m.Body) != problem || m.Value("Content-Type") != "application/json" || hits() != 1 {
		t.Errorf("POST -> %d %q (%s) after %d hits, want the backend's 500 after one", m.Status, m.Body, m.Value("Content-Type"), hits())
	}
	forget()
	m = rig.Do(t, a.Addr, "GET", rig.Get("n.example.test", "/"))
	if m.Status != 500 || string(m.Body) != problem || hits() != 2 {
		t.Errorf("GET -> %d %q after %d hits, want the backend's 500 after two", m.Status, m.Body, hits())
	}
	forget()
	pods[0].Handle(answer(503))
	pods[1].Handle(nil)
	for range 4 { // whichever endpoint comes first
		m = rig.Do(t, a.Addr, "GET", rig.Get("n.example.test", "/"))
		if got := outcome(m); got != "p2" {
			t.Errorf("GET with one good endpoint -> %s, want p2", got)
		}
	}
	if len(pods[0].Requests()) == 0 {
		t.Error("the endpoint with 503 was never tried: nothing was retried")
	}
}

func TestCB59ARouteWithoutReadyEndpointGives503(t *testing.T) {
	pod := rig.NewRecorder(t, "z")
	empty := rig.Slice("t1", "empty-1", "empty", "", int(pod.Addr.Port()))
	w := newWorld(t, "a", []rig.Object{
		rig.Ingress("t1", "i1", rig.R("z.example.test", "/", "Prefix", "empty")),
		rig.Ingress("t1", "i2", rig.R("z2.example.test", "/", "Prefix", "nosuch")),
		rig.Ingress("t1", "i3", rig.R("a.example.test", "/", "Prefix", "a")),
	})
	w.Put(rig.Service("t1", "empty"), empty)
	w.expect("z.example.test", "/", "503")
	w.expect("z2.example.test", "/", "503")
	w.expect("a.example.test", "/", "a")
	w.expect("unknown.test", "/", "404")
	w.noticed("nosuch")

	best := time.Hour
	c := rig.Dial(t, w.Addr)
	for range 10 {
		start := time.Now()
		c.Send(rig.Get("z.example.test", "/"))
		if m := c.Read("GET"); m.Status != 503 {
			t.Fatalf("status %d, want 503", m.Status)
		}
		best = min(best, time.Since(start))
	}
	if best > 5*time.Millisecond {
		t.Errorf("503 took %v at best, want 5 ms at most", best)
	}

	start := time.Now()
	w.Put(rig.Slice("t1", "empty-1", "empty", "", int(pod.Addr.Port()), rig.Ready("127.0.0.1")...))
	w.eventually("z.example.test", "/", "z")
	if took := time.Since(start); took > time.Second {
		t.Errorf("served %v after the endpoint came, want 1 s at most", took)
	}
}

func TestCB60TerminatingEndpointsServeIfNoOtherDoes(t *testing.T) {
	_, port := sameport(t, "p1", "p2", "p3")
	yes, no := new(true), new(false)
	leaving := rig.Endpoint{IP: ip(1), Ready: no, Serving: yes, Terminating: yes}
	gone := rig.Endpoint{IP: ip(1), Ready: no, Serving: no, Terminating: yes}
	a := rig.StartAgent(t, []rig.Object{rig.Service("t1", "s"), rig.Slice("t1", "s-1", "s", "", port, leaving),
		rig.Ingress("t1", "i", rig.R("e.example.test", "/", "Prefix", "s"))}, "--workers", "1")
	w := &world{Agent: a, t: t}
	w.eventually("e.example.test", "/", "p1")

	w.Put(rig.Slice("t1", "s-1", "s", "", port, leaving, rig.Endpoint{IP: ip(2), Ready: yes}))
	w.eventually("e.example.test", "/", "p2")
	for range 10 {
		w.expect("e.example.test", "/", "p2")
	}
	w.Put(rig.Slice("t1", "s-1", "s", "", port, gone))
	w.eventually("e.example.test", "/", "503")
	w.Put(rig.Slice("t1", "s-1", "s", "", port, rig.Endpoint{IP: ip(3)}))
	w.eventually("e.example.test", "/", "p3")
}

func TestCB63TheSameAddressInTwoSlices(t *testing.T) {
	_, port := sameport(t, "p1", "p2", "p3")
	s1 := rig.Slice("t1", "s-1", "s", "", port, rig.Ready(ip(1), ip(2))...)
	s2 := func(third *bool) rig.Object {
		return rig.Slice("t1", "s-2", "s", "", port, rig.Endpoint{IP: ip(2), Ready: new(true)}, rig.Endpoint{IP: ip(3), Ready: third})
	}
	a := rig.StartAgent(t, []rig.Object{rig.Service("t1", "s"), s1, s2(new(false)),
		rig.Ingress("t1", "i", rig.R("e.example.test", "/", "Prefix", "s"))}, "--workers", "1")
	p := (&rig.Pulse{Addr: a.Addr, Host: "e.example.test", Target: "/", Rate: 500}).Start()
	step := func(what string, services ...string) {
		t.Helper()
		rig.Eventually(t, rig.Deadline, what, func() error { return only(p.Shots(), services...) })
	}
	step("step 1", "p1", "p2")
	at := len(p.Shots())
	rig.Eventually(t, rig.Deadline, "200 answers", func() error {
		if n := len(p.Shots()) - at; n < 200 {
			return fmt.Errorf("%d so far", n)
		}
		return nil
	})
	share := 0
	for _, s := range p.Shots()[at : at+200] {
		if s.Body == "p2" {
			share++
		}
	}
	if share < 80 || share > 120 { // twice the weight would be 133
		t.Errorf("p2, listed twice, gave %d of 200 answers, want about 100", share)
	}
	a.Put(rig.Slice("t1", "s-1", "s", "", port, rig.Ready(ip(1))...))
	step("step 2", "p1", "p2")
	a.Put(s2(new(true)))
	step("step 3", "p1", "p2", "p3")
	a.Delete(s1)
	step("step 4", "p2", "p3")
	shots := p.Stop()
	if bad := rig.Failed(shots, 200); len(bad) != 0 {
		t.Errorf("%d of %d requests failed, first: %v", len(bad), len(shots), bad[0])
	}
}

func TestCB64NamedPortsOfAHeadlessService(t *testing.T) {
	p1, p2 := rig.NewRecorder(t, "p1"), rig.NewRecorder(t, "p2")
	service := rig.Service("t1", "s", rig.Port{Name: "http", Number: 9899, Target: "http"}, rig.Port{Name: "adm", Number: 9000, Target: 9000})
	service["spec"].(map[string]any)["clusterIP"] = "None"
	rule := func(path string, port any) rig.Rule {
		return rig.Rule{Host: "n.example.test", Path: path, Type: "Prefix", Service: "s", Port: port}
	}
	a := rig.StartAgent(t, []rig.Object{service,
		rig.Slice("t1", "s-1", "s", "http", int(p1.Addr.Port()), rig.Ready("127.0.0.1")...),
		rig.Slice("t1", "s-2", "s", "http", int(p2.Addr.Port()), rig.Ready("127.0.0.1")...),
		rig.Ingress("t1", "i", rule("/name", "http"), rule("/number", 9899), rule("/nope", "nope"))}, "--workers", "1")
	w := &world{Agent: a, t: t}
	for _, path := range []string{"/name", "/number"} {
		var got strings.Builder
		for range 6 {
			got.WriteString(outcome(w.get("n.example.test", path)) + " ")
		}
		if s := got.String(); strings.Count(s, "p1") != 3 || strings.Count(s, "p2") != 3 {
			t.Errorf("%s -> %s, want p1 and p2 in turn", path, s)
		}
	}
	w.expect("n.example.test", "/nope", "503")
	w.noticed("nope")
}
