package watch

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weirproxy/weir/k8s"
)

// hijack ends a request in the middle of what it was answered so far.
func hijack(w http.ResponseWriter) {
	w.(http.Flusher).Flush()
	c, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		c.Close()
	}
}

// TestNothingIsEmptiedByAFault breaks every request of every kind for a while, in
// different ways: what is known stays, and what changed meanwhile is told once
// requests work again.
func TestNothingIsEmptiedByAFault(t *testing.T) {
	faults := map[string]func(w http.ResponseWriter, c *call){
		"500":              func(w http.ResponseWriter, _ *call) { status(w, 500, "InternalError", "etcd is down") },
		"503":              func(w http.ResponseWriter, _ *call) { status(w, 503, "ServiceUnavailable", "not ready") },
		"429":              func(w http.ResponseWriter, _ *call) { status(w, 429, "TooManyRequests", "later") },
		"401":              func(w http.ResponseWriter, _ *call) { status(w, 401, "Unauthorized", "who is it") },
		"403":              func(w http.ResponseWriter, _ *call) { status(w, 403, "Forbidden", "no") },
		"410":              func(w http.ResponseWriter, _ *call) { status(w, 410, "Expired", "too old") },
		"nothing":          func(w http.ResponseWriter, _ *call) { hijack(w) },
		"not from the API": func(w http.ResponseWriter, _ *call) { fmt.Fprint(w, "<html>welcome</html>") },
		"an empty list of another kind": func(w http.ResponseWriter, _ *call) {
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"999"},"items":[]}`)
		},
		"a list cut short": func(w http.ResponseWriter, c *call) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","metadata":{"resourceVersion":"999"},"items":[`)
			hijack(w)
		},
		"a stream cut short": func(w http.ResponseWriter, c *call) {
			if c.verb == "list" {
				status(w, 500, "InternalError", "no list either")
				return
			}
			fmt.Fprint(w, bookmark(c.resource, 1, false))
			hijack(w)
		},
		"a garbage event": func(w http.ResponseWriter, c *call) {
			if c.verb == "list" {
				status(w, 500, "InternalError", "no list either")
				return
			}
			fmt.Fprint(w, `{"type":"ADDED","object":{"kind":"Gar`+"\x00"+`bage"}}`+"\n")
		},
		"an event of another kind": func(w http.ResponseWriter, c *call) {
			if c.verb == "list" {
				status(w, 500, "InternalError", "no list either")
				return
			}
			fmt.Fprint(w, `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","namespace":"t1","resourceVersion":"999"}}}`+"\n")
		},
		"an error event": func(w http.ResponseWriter, c *call) {
			fmt.Fprint(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"etcd"}}`+"\n")
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, a *api) {
				site(a)
				f := follow(t, a, nil)
				f.change(0)
				var broken atomic.Int64
				a.set(func() {
					a.answer = func(w http.ResponseWriter, c *call) bool {
						broken.Add(1)
						fault(w, c)
						return true
					}
				})
				if name != "410" { // so that both the watch and the whole are read
					a.forget()
				}
				a.endWatches()
				enough := int64(6)
				if name == "403" {
					enough = 4 // one of each kind, then comes a long pause
				}
				eventually(t, "some broken requests", func() bool { return broken.Load() >= enough })
				if n := f.told(); n != 1 {
					t.Fatalf("%d changes were told while nothing could be read: %+v", n-1, f.change(1))
				}
				eventually(t, "an error", func() bool { return f.kind("EndpointSlice").Errors > 0 })
				if k := f.kind("EndpointSlice"); k.Objects != 1 {
					t.Errorf("statistics %+v, want the slice that was there", k)
				}
				// While it is broken the world goes on.
				a.put("endpointslices", slice("t1", "web-b", "web", "10.0.0.2"))
				a.remove("endpointslices", at("t1", "web-a"))
				a.put("ingresses", ingress("t1", "more", "web"))
				a.set(func() { a.answer = nil })
				if name == "403" {
					return // it takes seconds to try again: see TestPauses
				}
				f.objects("the Ingress that came meanwhile", func(o *k8s.Objects) bool { return len(o.Ingresses) == 2 })
				eventually(t, "all slices", func() bool { return f.slices() == "t1/web-b 10.0.0.2" })
				eventually(t, "no failure", func() bool {
					return !slices.ContainsFunc(f.Stats().Kinds, func(k KindStats) bool { return k.Failure != "" })
				})
			})
		})
	}
}

// slices returns what was told of slices, as a translator would have it.
func (f *follower) slices() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := make(map[string][]string)
	for _, c := range f.changes {
		if c.Objects != nil {
			now = addresses(c.Objects.EndpointSlices)
		}
		for k, s := range c.Slices {
			if delete(now, k.String()); s != nil {
				now[k.String()] = addresses(c.Slices)[k.String()]
			}
		}
	}
	var out []string
	for name, list := range now {
		out = append(out, name+" "+strings.Join(list, ","))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// A watch that ends goes on where it was: no whole list is read, nothing is lost.
func TestAWatchThatEndsGoesOn(t *testing.T) {
	each(t, func(t *testing.T, a *api) {
		site(a)
		f := follow(t, a, nil)
		f.change(0)
		for n := range 3 {
			a.endWatches()
			a.put("endpointslices", slice("t1", "web-a", "web", fmt.Sprint("10.0.1.", n)))
			want := fmt.Sprint("t1/web-a 10.0.1.", n)
			eventually(t, want, func() bool { return f.slices() == want })
		}
		if k := f.kind("EndpointSlice"); k.Syncs != 1 {
			t.Errorf("statistics %+v, want one sync", k)
		}
	})
}

// When the server has forgotten what happened meanwhile, all is read anew, and what
// is gone then goes at once with what is new.
func TestWhatWasMissedIsFoundInAWholeList(t *testing.T) {
	each(t, func(t *testing.T, a *api) {
		site(a)
		a.put("endpointslices", slice("t1", "web-b", "web", "10.0.0.2"))
		a.put("endpointslices", slice("t1", "web-c", "web", "10.0.0.3"))
		f := follow(t, a, nil)
		f.change(0)
		a.set(func() { a.streams = !a.streams }) // and the other way round
		blocked := make(chan struct{})
		a.set(func() {
			a.answer = func(http.ResponseWriter, *call) bool {
				<-blocked
				return false
			}
		})
		a.endWatches()
		a.remove("endpointslices", at("t1", "web-a"))
		a.put("endpointslices", slice("t1", "web-b", "web", "10.0.0.9"))
		a.put("endpointslices", slice("t1", "web-d", "web", "10.0.0.4"))
		a.forget()
		close(blocked)
		eventually(t, "the changes", func() bool { return f.told() > 1 })
		c := f.change(1)
		want := map[string][]string{"t1/web-a": nil, "t1/web-b": {"10.0.0.9"}, "t1/web-d": {"10.0.0.4"}}
		if got := addresses(c.Slices); c.Objects != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("change %v, want %v at once", got, want)
		}
		f.silent("the rest of the list")
		eventually(t, "a second sync of all kinds", func() bool {
			return !slices.ContainsFunc(f.Stats().Kinds, func(k KindStats) bool { return k.Syncs != 2 })
		})
	})
}

// A watch that tells nothing, not even bookmarks, is given up.
func TestASilentWatchIsGivenUp(t *testing.T) {
	a := newAPI(t)
	site(a)
	s, err := New(Config{API: &rest.Config{Host: a.URL}})
	if err != nil {
		t.Fatal(err)
	}
	s.silence = 100 * time.Millisecond
	for _, f := range s.feeds {
		f.silence = s.silence
	}
	f := &follower{Source: s, t: t}
	f.start()
	f.change(0)
	a.set(func() {
		a.answer = func(w http.ResponseWriter, c *call) bool {
			if c.verb == "list" {
				return false
			}
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-c.Context().Done()
			return true
		}
	})
	a.endWatches()
	a.put("endpointslices", slice("t1", "web-a", "web", "10.0.0.2"))
	eventually(t, "the slice, from a list", func() bool { return f.slices() == "t1/web-a 10.0.0.2" })
	if k := f.kind("EndpointSlice"); k.Errors == 0 {
		t.Errorf("statistics %+v, want an error", k)
	}
}

// lines collects what is logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// What Weir needs and may not read keeps it from being ready, and is told with the
// remedy.
func TestAForbiddenKindIsSaidWithItsRemedy(t *testing.T) {
	a := newAPI(t)
	site(a)
	a.answer = func(w http.ResponseWriter, c *call) bool {
		if c.resource != "endpointslices" {
			return false
		}
		status(w, 403, "Forbidden", "endpointslices is forbidden")
		return true
	}
	log := &lines{}
	f := follow(t, a, func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(log, nil))
		c.Objects.WatchNamespaces = []string{"t1"}
	})
	eventually(t, "the reason in the log", func() bool { return strings.Contains(log.String(), "endpointslices in namespace t1") })
	for _, want := range []string{"level=ERROR", "Role of namespace t1", `discovery.k8s.io`, `list`, `watch`, "docs/rbac.md"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log %s lacks %q", log, want)
		}
	}
	f.silent("while slices are forbidden")
	if k := f.kind("EndpointSlice"); k.Synced || !strings.Contains(k.Failure, "forbidden") {
		t.Errorf("statistics %+v, want the failure", k)
	}
	for _, c := range a.asked() {
		if c == "list endpointslices t1" {
			t.Error("what was forbidden as a stream was asked for as a list")
		}
	}
}

// What Weir can do without is told as a notice, which goes when the permission comes.
func TestAForbiddenSecretIsANotice(t *testing.T) {
	a := newAPI(t)
	site(a)
	a.put("secrets", secret("t1", "cert"))
	a.put("ingresses", ingress("t1", "tls", "web", "cert"))
	a.answer = func(w http.ResponseWriter, c *call) bool {
		if c.resource == "secrets" || c.resource == "nodes" {
			status(w, 403, "Forbidden", "no")
			return true
		}
		return false
	}
	f := follow(t, a, func(c *Config) { c.NodeName = "node-1" })
	c := f.change(0)
	if len(c.Objects.Ingresses) != 2 || len(c.Objects.Secrets) != 0 {
		t.Errorf("objects %+v, want both Ingresses and no Secret", c.Objects)
	}
	if len(c.Notices) != 2 || c.Notices[0].Kind != "Node" || c.Notices[1].Kind != "Secret" {
		t.Fatalf("notices %+v, want one of the Node and one of the Secret", c.Notices)
	}
	n := c.Notices[1]
	if n.Namespace != "t1" || n.Name != "cert" || n.Reason != "Forbidden" || n.Severity != k8s.Warning ||
		!strings.Contains(n.Remedy, `resourceNames ["cert"]`) || !strings.Contains(n.Remedy, "Role of namespace t1") {
		t.Errorf("notice %+v, want the Secret and the rule it lacks", n)
	}
	a.remove("ingresses", at("t1", "tls"))
	eventually(t, "no notice of a Secret that nobody names", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.changes[len(f.changes)-1].Notices) == 1
	})
}

// A server that is away for a while changes nothing, and is asked again soon after
// it is back.
func TestTheServerMayGoAway(t *testing.T) {
	a := newAPI(t)
	site(a)
	f := follow(t, a, nil)
	f.change(0)
	address := a.Listener.Addr().String()
	a.endWatches()
	a.CloseClientConnections()
	a.Listener.Close()
	eventually(t, "failures of each kind", func() bool {
		return !slices.ContainsFunc(f.Stats().Kinds, func(k KindStats) bool { return k.Errors < 3 || k.Failure == "" })
	})
	if n := f.told(); n != 1 {
		t.Errorf("%d changes were told while the server was away", n-1)
	}
	a.put("endpointslices", slice("t1", "web-a", "web", "10.0.0.2"))
	server := &http.Server{Addr: address, Handler: a.Config.Handler}
	go server.ListenAndServe()
	defer server.Close()
	start := time.Now()
	eventually(t, "the slice", func() bool { return f.slices() == "t1/web-a 10.0.0.2" })
	if took := time.Since(start); took > pauseMax+time.Second {
		t.Errorf("heard of it %s after the server was back, want %s at most", took, pauseMax)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	a := newAPI(t)
	blocked := make(chan struct{})
	a.answer = func(_ http.ResponseWriter, c *call) bool {
		select {
		case <-blocked:
		case <-c.Context().Done():
		}
		return false
	}
	defer close(blocked)
	s, err := New(Config{API: &rest.Config{Host: a.URL}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	s.Run(ctx, func(k8s.Change) { t.Error("a change was told") })
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("Run ended after %s", took)
	}
}
