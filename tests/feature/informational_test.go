package feature

import (
	"testing"

	"github.com/weirproxy/weir/tests/rig"
)

// hint returns a 103 with a link.
func hint(link string) string { return rig.Lines("HTTP/1.1 103 Early Hints", "Link: "+link) }

func TestEarlyHintsArePassedOn(t *testing.T) {
	p := newPool(t, 1, nil)
	p.handle(func(x *rig.Exchange) {
		x.Write(hint("</a.css>; rel=preload"))
		x.Write(hint("</b.js>; rel=preload"))
		x.Answer(200, "done")
	})
	c := rig.Dial(t, p.Addr)
	for range 2 { // the connection stays in step
		c.Send(rig.Get(host, "/"))
		m := c.Read("GET")
		if m.Status != 200 || string(m.Body) != "done" || len(m.Interim) != 2 {
			t.Fatalf("answer %d %q after %d interim ones, want 200 done after two", m.Status, m.Body, len(m.Interim))
		}
		for i, want := range []string{"</a.css>; rel=preload", "</b.js>; rel=preload"} {
			if got := m.Interim[i]; got.Status != 103 || got.Value("Link") != want {
				t.Errorf("interim answer %d: %d, Link %q, want 103, %q", i, got.Status, got.Value("Link"), want)
			}
		}
	}
}

// TestEarlyHintsAreNotHeldBack: they are worth nothing behind the answer.
func TestEarlyHintsAreNotHeldBack(t *testing.T) {
	p := newPool(t, 1, nil)
	release := make(chan struct{})
	p.handle(func(x *rig.Exchange) {
		x.Write(hint("</a.css>"))
		<-release
		x.Answer(200, "done")
	})
	c := rig.Dial(t, p.Addr)
	c.Send(rig.Get(host, "/"))
	if m := c.ReadHead(); m.Status != 103 {
		t.Errorf("before the answer -> %d, want 103", m.Status)
	}
	close(release)
	if m := c.Read("GET"); m.Status != 200 || len(m.Interim) != 0 {
		t.Errorf("answer %d after %d more interim ones, want 200 after none", m.Status, len(m.Interim))
	}
}

func TestContinueComesFromTheEndpoint(t *testing.T) {
	p := newPool(t, 1, nil)
	waiting, release := make(chan struct{}, 1), make(chan struct{}, 1)
	p.handle(func(x *rig.Exchange) {
		waiting <- struct{}{}
		<-release
		x.Write(rig.Lines("HTTP/1.1 100 Continue"))
		x.Answer(200, "stored")
	})
	c := rig.Dial(t, p.Addr)
	c.Send(rig.Lines("POST /up HTTP/1.1", "Host: "+host, "Content-Length: 5", "Expect: 100-continue"))
	<-waiting
	if got := p.backends[0].Last(t).Value("Expect"); got != "100-continue" {
		t.Errorf("Expect: %q at the endpoint, want 100-continue", got)
	}
	release <- struct{}{}
	if m := c.ReadHead(); m.Status != 100 {
		t.Fatalf("before the body -> %d, want 100", m.Status)
	}
	c.Send("hello")
	if m := c.Read("POST"); m.Status != 200 || string(m.Body) != "stored" || len(m.Interim) != 0 {
		t.Errorf("answer %d %q after %d more interim ones, want 200 stored", m.Status, m.Body, len(m.Interim))
	}
	if got := string(p.backends[0].Last(t).Body); got != "hello" {
		t.Errorf("body %q at the endpoint, want hello", got)
	}
}

// TestARefusedExpectationNeedsNoBody: the endpoint's final answer comes instead
// of the 100, and the body never.
func TestARefusedExpectationNeedsNoBody(t *testing.T) {
	p := newPool(t, 1, nil)
	p.handle(func(x *rig.Exchange) {
		x.Write(rig.Lines("HTTP/1.1 403 No", "Content-Length: 2", "Connection: close") + "no")
		x.Close()
	})
	c := rig.Dial(t, p.Addr)
	c.Send(rig.Lines("POST /up HTTP/1.1", "Host: "+host, "Content-Length: 5", "Expect: 100-continue"))
	if m := c.Read("POST"); m.Status != 403 || string(m.Body) != "no" || len(m.Interim) != 0 {
		t.Errorf("answer %d %q after %d interim ones, want 403 no after none", m.Status, m.Body, len(m.Interim))
	}
}

// TestHTTP10ClientsGetNoInformationalAnswers (RFC 9110, 15.2).
func TestHTTP10ClientsGetNoInformationalAnswers(t *testing.T) {
	p := newPool(t, 1, nil)
	p.handle(func(x *rig.Exchange) {
		x.Write(rig.Lines("HTTP/1.1 100 Continue"))
		x.Write(hint("</a.css>"))
		x.Write(hint("</b.css>"))
		x.Answer(200, "done")
	})
	for name, request := range map[string]string{
		"GET":              rig.Lines("GET / HTTP/1.0", "Host: "+host),
		"POST":             rig.Lines("POST / HTTP/1.0", "Host: "+host, "Content-Length: 5") + "hello",
		"POST with Expect": rig.Lines("POST / HTTP/1.0", "Host: "+host, "Content-Length: 5", "Expect: 100-continue") + "hello",
		"GET, keep-alive":  rig.Lines("GET / HTTP/1.0", "Host: "+host, "Connection: keep-alive"),
	} {
		t.Run(name, func(t *testing.T) {
			m := rig.Do(t, p.Addr, "GET", request)
			if m.Status != 200 || string(m.Body) != "done" || len(m.Interim) != 0 {
				t.Errorf("answer %d %q after %d interim ones, want 200 done after none", m.Status, m.Body, len(m.Interim))
			}
		})
	}
}
