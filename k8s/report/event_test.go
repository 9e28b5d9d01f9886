package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weirproxy/weir/k8s"
)

// only returns the one Event that there is.
func only(t *testing.T, c *cluster) *eventsv1.Event {
	t.Helper()
	all := c.allEvents()
	if len(all) != 1 {
		t.Fatalf("%d Events, want 1: %v", len(all), all)
	}
	for _, e := range all {
		return e
	}
	return nil
}

func TestANoticeBecomesAnEventOnItsObject(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.put(name("t2", "thief"), "")
		r := start(t, c, "weir-abc", nil)
		r.Set(nil, []k8s.Notice{refusal("t2", "thief", `host "a.test" belongs to namespace "t1": its rules are left out`)})
		after(5 * time.Second)
		e := only(t, c)
		const note = `spec.rules: host "a.test" belongs to namespace "t1": its rules are left out. Remedy: use another host`
		_, ref, _ := c.Ingress(name("t2", "thief"))
		ref.ResourceVersion = ""
		if e.Namespace != "t2" || e.Regarding != ref || e.Reason != "HostAlreadyClaimed" || e.Note != note ||
			e.Type != corev1.EventTypeWarning || e.ReportingInstance != "weir-abc" || e.Action == "" || e.EventTime.IsZero() {
			t.Errorf("Event = %+v, want reason and note %q on %+v", e, note, ref)
		}
	})
}

func TestAnEventThatLastsIsRefreshedRarely(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.put(name("t2", "thief"), "")
		r := start(t, c, "a", nil)
		notices := []k8s.Notice{refusal("t2", "thief", "taken")}
		for range 60 * 6 { // applied again each minute for six hours
			r.Set(nil, append([]k8s.Notice{}, notices...))
			after(time.Minute)
		}
		e := only(t, c)
		if n := c.count("create events") + c.count("patch events"); n < 12 || n > 17 || e.Series == nil || int(e.Series.Count) != n {
			t.Errorf("%d requests in 6 h, series %+v, want one each half an hour, counted", n, e.Series)
		}
		// As the API server deletes it, a new one comes.
		c.mu.Lock()
		clear(c.events)
		c.mu.Unlock()
		after(eventRefresh + time.Minute)
		only(t, c)
		// When the notice goes, nothing more is written.
		r.Set(nil, nil)
		before := c.count("create events") + c.count("patch events")
		after(3 * time.Hour)
		if n := c.count("create events") + c.count("patch events"); n != before {
			t.Errorf("%d requests after the notice went, want none", n-before)
		}
	})
}

func TestANewLeaderFindsTheEventOfTheOldOne(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.put(name("t2", "thief"), "")
		notices := []k8s.Notice{refusal("t2", "thief", "taken")}
		a := start(t, c, "a", nil)
		a.Set(nil, notices)
		after(10 * time.Minute)
		first := only(t, c)
		a.end()
		b := start(t, c, "b", nil)
		b.Set(nil, notices)
		after(15 * time.Minute)
		if e := only(t, c); e.ReportingInstance != "a" || e.Series != nil {
			t.Errorf("Event under the new leader = %+v, want the old one's untouched", e)
		}
		after(10 * time.Minute)
		if e := only(t, c); e.Series == nil || e.Series.Count != 2 || e.EventTime != first.EventTime {
			t.Errorf("Event half an hour after it was written = %+v, want it observed twice", e)
		}
	})
}

func TestANoticeThatComesBackIsObservedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.put(name("t2", "thief"), "")
		notices := []k8s.Notice{refusal("t2", "thief", "taken")}
		r := start(t, c, "a", nil)
		for range 120 { // on and off for ten minutes
			r.Set(nil, notices)
			after(2500 * time.Millisecond)
			r.Set(nil, nil)
			after(2500 * time.Millisecond)
		}
		if n := c.count("create events") + c.count("patch events"); n < 2 || n > 4 {
			t.Errorf("%d requests for a notice that flaps for 10 min, want 2 to 4", n)
		}
	})
}

func TestEventsWhoseNoticeIsGoneAreForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.put(name("t2", "thief"), "")
		r := start(t, c, "a", nil)
		r.Set(nil, nil)
		after(time.Second)
		e := newEvents(r.Reporter)
		defer e.queue.ShutDown()
		e.set([]k8s.Notice{refusal("t2", "thief", "taken")})
		for key := range e.wanted {
			if again := e.settle(t.Context(), key); again <= 0 || len(e.written) != 1 {
				t.Errorf("settle = %v with %d known, want a time and 1", again, len(e.written))
			}
			e.set(nil)
			if again := e.settle(t.Context(), key); again != 0 || len(e.written) != 0 {
				t.Errorf("settle without the notice = %v with %d known, want 0 and none", again, len(e.written))
			}
		}
	})
}

func TestANoticeThatGoesAtOnceBecomesNoEvent(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.put(name("t2", "thief"), "")
		r := start(t, c, "a", nil)
		r.Set(nil, []k8s.Notice{refusal("t2", "thief", "taken")})
		after(eventSettle / 2)
		r.Set(nil, nil)
		after(time.Hour)
		if n := len(c.allEvents()); n != 0 {
			t.Errorf("%d Events, want none", n)
		}
	})
}

func TestARecreatedObjectGetsItsOwnEvent(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.put(name("t2", "thief"), "")
		r := start(t, c, "a", nil)
		r.Set(nil, []k8s.Notice{refusal("t2", "thief", "taken")})
		after(10 * time.Second)
		r.Set(nil, nil)
		after(time.Second)
		c.put(name("t2", "thief"), "")
		r.Set(nil, []k8s.Notice{refusal("t2", "thief", "taken")})
		after(10 * time.Second)
		if n := len(c.allEvents()); n != 2 {
			t.Errorf("%d Events for two objects of one name, want 2", n)
		}
	})
}

func TestOneObjectCannotFloodEvents(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.put(name("t2", "bad"), "")
		c.put(name("t3", "thief"), "")
		var notices []k8s.Notice
		for n := range 500 {
			notices = append(notices, refusal("t2", "bad", fmt.Sprint("message ", n)))
		}
		notices = append(notices, refusal("t3", "thief", "taken"))
		r := start(t, c, "a", nil)
		r.Set(nil, notices)
		after(10 * time.Second)
		perObject := map[string]int{}
		for _, e := range c.allEvents() {
			perObject[e.Regarding.Name]++
		}
		if perObject["bad"] != eventBurst || perObject["thief"] != 1 {
			t.Errorf("Events after 10 s = %v, want %d and 1", perObject, eventBurst)
		}
		after(time.Hour)
		if got := r.Stats(); got.EventsSent < 100 || got.EventsSent > 140 || got.EventsDelayed == 0 || got.EventsWanted != 501 {
			t.Errorf("stats after an hour = %+v, want about 130 of 501 sent and the rest delayed", got)
		}
		if n := c.count("create events") + c.count("patch events"); n > 140 {
			t.Errorf("%d requests in an hour, want at most 140", n)
		}
	})
}

func TestManyObjectsGetTheirEventsAtTheRate(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		var notices []k8s.Notice
		for n := range 1000 {
			c.put(name("t", fmt.Sprint("i", n)), "")
			notices = append(notices, refusal("t", fmt.Sprint("i", n), "taken"))
		}
		r := start(t, c, "a", nil)
		r.Set(nil, notices)
		after(10 * time.Second)
		if n := c.count("create events"); n > 20*10+50 || n < 20*8 {
			t.Errorf("%d Events after 10 s, want about 230", n)
		}
		after(50 * time.Second)
		if n := len(c.allEvents()); n != 1000 {
			t.Errorf("%d Events after a minute, want all 1000", n)
		}
	})
}

func TestErrorsComeBeforeWarnings(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.put(name("t2", "bad"), "")
		var notices []k8s.Notice
		for n := range 2 * eventBurst {
			notice := refusal("t2", "bad", fmt.Sprint("message ", n))
			if n%2 == 0 {
				notice.Severity = k8s.Warning
				notice.Reason = "NotSupported"
			}
			notices = append(notices, notice)
		}
		r := start(t, c, "a", nil)
		r.Set(nil, notices)
		after(10 * time.Second)
		for _, e := range c.allEvents() {
			if e.Reason != "HostAlreadyClaimed" {
				t.Errorf("Event %q before all errors have theirs", e.Note)
			}
		}
	})
}

func TestRefusedEventsAreTriedAgainLater(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.put(name("t2", "thief"), "")
		c.setRefuse(func(call string) error {
			if strings.HasSuffix(call, "events") {
				return apierrors.NewForbidden(of("events"), "", errors.New("no rule"))
			}
			return nil
		})
		r := start(t, c, "a", nil)
		r.Set(nil, []k8s.Notice{refusal("t2", "thief", "taken")})
		after(time.Hour)
		if n := c.count("create events"); n < 6 || n > 9 || r.Stats().EventErrors != uint64(n) {
			t.Errorf("%d requests in an hour, stats %+v, want 6 to 9, each counted", n, r.Stats())
		}
		c.setRefuse(nil)
		after(eventRefused)
		only(t, c)
	})
}

func TestANamespaceThatEndsIsNoError(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		c.put(name("t2", "thief"), "")
		c.setRefuse(func(call string) error {
			if call != "create events" {
				return nil
			}
			err := apierrors.NewForbidden(of("events"), "", errors.New("the namespace ends"))
			err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
			return err
		})
		r := start(t, c, "a", nil)
		r.Set(nil, []k8s.Notice{refusal("t2", "thief", "taken")})
		after(time.Hour)
		if n := c.count("create events"); r.Stats().EventErrors != 0 || n == 0 || n > 10 {
			t.Errorf("%d requests, stats %+v, want a few and no error", n, r.Stats())
		}
	})
}

// Where some namespaces refuse Events and others take them, the log stays short.
func TestWhatOneNamespaceRefusesIsToldOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		var notices []k8s.Notice
		for n := range 200 {
			ns := []string{"good", "bad"}[n%2]
			c.put(name(ns, fmt.Sprint("i", n)), "")
			notices = append(notices, refusal(ns, fmt.Sprint("i", n), "taken"))
		}
		r := startBy(t, poor{c}, c, "a", nil)
		r.Set(nil, notices)
		after(time.Minute)
		warned := 0
		for _, line := range r.logs.lines() {
			if strings.Contains(line, "Forbidden") {
				warned++
			}
		}
		if got := r.Stats(); warned != 1 || got.EventsSent != 100 || got.EventErrors != 100 {
			t.Errorf("%d warnings, stats %+v, want 1 with 100 sent and 100 refused", warned, got)
		}
	})
}

// poor may not write Events in the namespace bad.
type poor struct{ *cluster }

func (p poor) createEvent(ctx ctx, e *eventsv1.Event) error {
	if e.Namespace == "bad" {
		return apierrors.NewForbidden(of("events"), e.Name, errors.New("no rule"))
	}
	return p.cluster.createEvent(ctx, e)
}

func TestWhichNoticesBecomeEvents(t *testing.T) {
	nginx := "metadata.annotations[nginx.ingress.kubernetes.io/service-upstream]"
	for _, tt := range []struct {
		name   string
		notice k8s.Notice
		want   bool
	}{
		{"error", k8s.Notice{Severity: k8s.Error, Kind: "Ingress", Name: "i"}, true},
		{"warning", k8s.Notice{Severity: k8s.Warning, Kind: "IngressClass", Name: "c"}, true},
		{"info", k8s.Notice{Severity: k8s.Info, Kind: "Ingress", Name: "i", Field: "spec.tls"}, false},
		{"info on an annotation of ingress-nginx", k8s.Notice{Severity: k8s.Info, Kind: "Ingress", Name: "i", Field: nginx}, true},
		{"info on a key of its ConfigMap", k8s.Notice{Severity: k8s.Info, Kind: "ConfigMap", Name: "m", Field: "data[worker-processes]"}, true},
		{"about a file", k8s.Notice{Severity: k8s.Error, File: "a.yaml"}, false},
	} {
		if got := notable(&tt.notice); got != tt.want {
			t.Errorf("%s: notable = %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestAnEventOnAnObjectWithoutNamespaceIsInDefault(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster) {
		r := start(t, c, "a", nil)
		r.Set(nil, []k8s.Notice{
			{Severity: k8s.Warning, Kind: "IngressClass", Name: "weir", Reason: "SecondDefaultClass", Message: "m"},
			{Severity: k8s.Warning, Kind: "ConfigMap", Namespace: "x", Name: "absent", Reason: "NoConfigMap", Message: "m"},
		})
		after(10 * time.Second)
		if e := only(t, c); e.Namespace != "default" || e.Regarding.Kind != "IngressClass" {
			t.Errorf("Event = %+v, want one on the class alone, in default", e)
		}
	})
}

func TestNotesFit(t *testing.T) {
	long := strings.Repeat("ü", 2000)
	for _, n := range []k8s.Notice{
		{Message: long}, {Field: long, Message: long, Remedy: long}, {Message: "bad \xff bytes" + long, Remedy: "r"},
	} {
		got := note(&n)
		if len(got) > noteBytesMax || !utf8.ValidString(got) || n.Remedy == "r" && !strings.HasSuffix(got, ". Remedy: r") {
			t.Errorf("note = %d bytes, %q, want valid UTF-8 of at most %d bytes with the remedy", len(got), got, noteBytesMax)
		}
	}
	if got := note(&k8s.Notice{Message: "m"}); got != "m" {
		t.Errorf("note = %q, want m", got)
	}
}

func TestNamesOfEventsAreValidAndTellEventsApart(t *testing.T) {
	object := &corev1.ObjectReference{UID: "u"}
	seen := map[types.NamespacedName]string{}
	base := refusal("t", "i", "m")
	other := func(edit func(*k8s.Notice)) k8s.Notice { n := base; edit(&n); return n }
	for what, n := range map[string]k8s.Notice{
		"base":    base,
		"field":   other(func(n *k8s.Notice) { n.Field = "f" }),
		"reason":  other(func(n *k8s.Notice) { n.Reason = "R" }),
		"message": other(func(n *k8s.Notice) { n.Message = "n" }),
		"kind":    other(func(n *k8s.Notice) { n.Kind = "Service" }),
		"long":    other(func(n *k8s.Notice) { n.Name = strings.Repeat("a", 253) }),
		"cut":     other(func(n *k8s.Notice) { n.Name = strings.Repeat("a", 235) + "." + strings.Repeat("b", 17) }),
		"odd":     other(func(n *k8s.Notice) { n.Name = "system:Odd_" }),
	} {
		key := eventKey(&n, object)
		if problems := validation.IsDNS1123Subdomain(key.Name); len(problems) != 0 {
			t.Errorf("%s: name %q is not valid: %v", what, key.Name, problems)
		}
		if before := seen[key]; before != "" {
			t.Errorf("%s and %s have the same name %q", what, before, key.Name)
		}
		seen[key] = what
		if again := eventKey(&n, object); again != key {
			t.Errorf("%s: names differ: %v, %v", what, key, again)
		}
	}
	base.Line = 7
	if eventKey(&base, object) != eventKey(&k8s.Notice{Severity: k8s.Warning, Kind: "Ingress", Namespace: "t", Name: "i",
		Field: base.Field, Reason: base.Reason, Message: base.Message, Remedy: base.Remedy}, object) {
		t.Error("the name depends on where the object stands")
	}
}
