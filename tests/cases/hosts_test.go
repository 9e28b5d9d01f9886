package cases

import (
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

func TestCB10PortAndCaseOfTheHostAreIgnored(t *testing.T) {
	w := newWorld(t, "a", []rig.Object{rig.Ingress("t1", "i", rig.R("app.example.test", "/", "Prefix", "a"))})
	for host, want := range map[string]string{
		"app.example.test:8082": "a", "APP.Example.Test": "a", "app.example.test.": "a", "app.example.test.:80": "a",
		"app.example.test:abc": "400", "app.example.test:0x50": "400", "app.example.test:99999": "400",
		"other.example.test": "404",
	} {
		w.expect(host, "/", want)
	}
}

func TestCB12WildcardCoversOneLabel(t *testing.T) {
	w := newWorld(t, "w", []rig.Object{rig.Ingress("t1", "i", rig.R("*.t.example.test", "/", "Prefix", "w"))})
	w.expect("one.t.example.test", "/", "w")
	w.expect("one.two.t.example.test", "/", "404")
	w.expect("t.example.test", "/", "404")
	if got := w.get(".t.example.test", "/").Status; got != 400 && got != 404 {
		t.Errorf("empty first label -> %d, want 400 or 404", got)
	}
}

func TestCB16AHostBelongsToTheNamespaceThatClaimedItFirst(t *testing.T) {
	own := rig.Ingress("t1", "own", rig.R("api.example.test", "/", "Prefix", "a"))
	thief := rig.Ingress("t2", "thief", rig.R("api.example.test", "/login", "Exact", "evil"))
	more := rig.Ingress("t1", "more", rig.R("api.example.test", "/v2", "Prefix", "b"))
	w := newWorld(t, "a b t2/evil", []rig.Object{own, thief, more})
	w.expect("api.example.test", "/login", "a")
	w.expect("api.example.test", "/v2", "b")
	w.noticed(`"thief"`, "HostAlreadyClaimed")
	untouched(t, w.pods["evil"])

	start := time.Now()
	w.Delete(own, more)
	w.eventually("api.example.test", "/login", "evil")
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("the host changed hands after %v, want 2 s at most", took)
	}
	w.expect("api.example.test", "/v2", "404")
}

func TestCB17AnIngressMayLoseOneHostAndKeepAnother(t *testing.T) {
	w := newWorld(t, "a t2/x t2/y", []rig.Object{
		rig.Ingress("t1", "one", rig.R("cafe.example.test", "/", "Prefix", "a")),
		rig.Ingress("t2", "two", rig.R("cafe.example.test", "/", "Prefix", "x"), rig.R("pub.example.test", "/", "Prefix", "y")),
	})
	w.expect("cafe.example.test", "/", "a")
	w.expect("pub.example.test", "/", "y")
	w.noticed("cafe.example.test", `"two"`)
	untouched(t, w.pods["x"])
}

func TestCB19DeletingTheWinnerSwitchesWithoutAGap(t *testing.T) {
	older := rig.Ingress("t1", "old", rig.R("rn.example.test", "/", "Prefix", "a"))
	w := newWorld(t, "a b", []rig.Object{older, rig.Ingress("t1", "new", rig.R("rn.example.test", "/", "Prefix", "b"))})
	p := (&rig.Pulse{Addr: w.Addr, Host: "rn.example.test", Target: "/", Rate: 200}).Start()
	await := func(service string) {
		t.Helper()
		rig.Eventually(t, rig.Deadline, "answers from "+service, func() error { return seen(p.Shots(), service) })
	}
	await("a")
	w.Delete(older)
	await("b")
	shots := p.Stop()
	if bad := rig.Failed(shots, 200); len(bad) != 0 {
		t.Errorf("%d of %d requests failed, first: %v", len(bad), len(shots), bad[0])
	}
	var order strings.Builder
	for _, s := range shots {
		order.WriteString(s.Body)
	}
	// Requests overlap, so a few may finish out of order around the switch.
	if got := order.String(); !strings.HasPrefix(got, "a") || !strings.HasSuffix(got, "b") {
		t.Errorf("answers in order: %s, want a... then b...", got)
	}
}
