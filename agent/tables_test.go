package agent

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/l7/route"
)

// The objects of a small site; %s is the endpoint's address, %d its port.
const site = `apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: weir}
spec: {controller: weir.io/ingress}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  ingressClassName: weir
  rules:
  - host: shop.example
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{name: http, port: 80, targetPort: 8080}]}
`

// endpoints is the slice of service web.
func endpoints(ip string, port uint16) string {
	return fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-a, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: %d}]
endpoints: [{addresses: [%q], conditions: {ready: true}}]
`, port, ip)
}

// put writes a file in one step.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	temp := filepath.Join(dir, name+".new")
	if err := os.WriteFile(temp, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, dir string) k8s.Change {
	t.Helper()
	d, err := k8s.NewDir(dir, discard())
	if err != nil {
		t.Fatal(err)
	}
	o, n, err := d.Load()
	if err != nil {
		t.Fatal(err)
	}
	return k8s.Change{Objects: o, Notices: n}
}

// recorder notes the calls that a data path gets.
type recorder struct {
	calls    []string
	measured int // calls of Measure
	onCall   func()
}

func (r *recorder) SetTable(t *route.Table) {
	r.calls = append(r.calls, fmt.Sprint("table with ", t.Routes(), " routes"))
	r.onCall()
}

func (r *recorder) EndpointsChanged() {
	r.calls = append(r.calls, "endpoints")
	r.onCall()
}

func (r *recorder) Measure(time.Time) { r.measured++ }

// A change is measured from its first event, if that is known, once it has an
// effect; workers are asked only about endpoints.
func TestChangesAreMeasuredFromTheirFirstEvent(t *testing.T) {
	s := new(state)
	r := idlePath()
	tables := newTables(k8s.Options{Workers: 1}, r, s, discard())
	dir := t.TempDir()
	put(t, dir, "site.yaml", site)
	put(t, dir, "endpoints.yaml", endpoints("10.0.0.1", 8080))
	c := load(t, dir)
	objects := c.Objects
	step := func(name string, c k8s.Change, endpoints, tableCount uint64, measured int) {
		t.Helper()
		tables.apply(c)
		var got [2]uint64
		for i, h := range []*route.Histogram{&s.delays.endpoints, &s.delays.objects} {
			for k := range h.Count {
				got[i] += h.Count[k].Load()
			}
		}
		if got != [2]uint64{endpoints, tableCount} || r.measured != measured {
			t.Errorf("%s: %v changes of endpoints and of objects measured, workers asked %d times; want %d, %d, %d", name, got, r.measured, endpoints, tableCount, measured)
		}
	}
	ago := time.Now().Add(-time.Second)
	c.Seen = ago
	step("the first set", c, 0, 0, 0)
	change := func(ready bool, seen time.Time) k8s.Change {
		list := maps.Clone(objects.EndpointSlices)
		for key, x := range list {
			x = x.DeepCopy()
			x.Endpoints[0].Conditions.Ready = &ready
			list[key] = x
		}
		return k8s.Change{Slices: list, Seen: seen}
	}
	step("endpoints", change(false, ago), 1, 0, 1)
	if got := s.delays.endpoints.Sum.Load(); got < 1_000_000 || got > 60_000_000 {
		t.Errorf("%d µs, want a second and a little more", got)
	}
	step("no effect", change(false, ago), 1, 0, 1)
	step("nobody knows when", change(true, time.Time{}), 1, 0, 1)
	put(t, dir, "site.yaml", strings.Replace(site, "path: /,", "path: /new,", 1))
	c = load(t, dir)
	c.Seen = ago
	step("a table", c, 1, 1, 1)
}

func TestTablesTellTheDataPathWhatChanged(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "site.yaml", site)
	put(t, dir, "endpoints.yaml", endpoints("10.0.0.1", 8080))
	s := new(state)
	r := &recorder{}
	tables := newTables(k8s.Options{Workers: 1}, r, s, discard())
	r.onCall = func() {
		if tables.started() {
			return
		}
		select {
		case <-tables.first:
			t.Error("the first table counts as in force before the data path has it")
		default:
		}
	}
	apply := func(what string, want ...string) {
		t.Helper()
		r.calls = nil
		tables.apply(load(t, dir))
		if !slices.Equal(r.calls, want) {
			t.Errorf("%s: calls = %q, want %q", what, r.calls, want)
		}
	}
	if tables.started() {
		t.Error("started before the first table")
	}
	apply("first objects", "table with 1 routes", "endpoints")
	select {
	case <-tables.first:
	default:
		t.Error("first is not closed after the first table")
	}
	put(t, dir, "endpoints.yaml", endpoints("10.0.0.2", 8080))
	apply("another endpoint", "endpoints")
	if f := s.inForce.Load(); f.Table == nil || f.Routes != 1 || f.built <= 0 {
		t.Errorf("after a change of endpoints %d routes, built in %s, table %v; want those of the first table", f.Routes, f.built, f.Table)
	}
	apply("nothing")
	put(t, dir, "site.yaml", strings.Replace(site, "path: /,", "path: /new,", 1))
	apply("another path", "table with 1 routes", "endpoints")
	if got := s.updates.Load(); got != 4 {
		t.Errorf("%d updates, want 4", got)
	}
}

func TestNoticesAreLoggedWhenTheyAppearChangeAndGo(t *testing.T) {
	var out bytes.Buffer
	l := noticeLog{logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))}
	a := k8s.Notice{Severity: k8s.Error, Kind: "Ingress", Namespace: "shop", Name: "web", Field: "spec", Reason: "Bad", Message: "first", File: "a.yaml", Line: 3}
	b := k8s.Notice{Severity: k8s.Warning, Kind: "Service", Namespace: "shop", Name: "web", Reason: "Odd", Message: "second", Remedy: "mend it"}
	moved, changed := a, b
	moved.Line = 4
	changed.Message = "third"
	for _, step := range []struct {
		name string
		in   []k8s.Notice
		want []string
	}{
		{"appear", []k8s.Notice{a, b, b}, []string{
			`level=ERROR msg=first reason=Bad kind=Ingress namespace=shop name=web field=spec file=a.yaml line=3`,
			`level=WARN msg=second reason=Odd kind=Service namespace=shop name=web remedy="mend it"`}},
		{"stay", []k8s.Notice{a, b}, nil},
		{"move", []k8s.Notice{moved, b}, nil},
		{"change", []k8s.Notice{moved, changed}, []string{
			`level=WARN msg=third reason=Odd kind=Service namespace=shop name=web remedy="mend it"`,
			`level=INFO msg="no longer so: second" reason=Odd kind=Service namespace=shop name=web remedy="mend it"`}},
		{"go", []k8s.Notice{changed}, []string{
			`level=INFO msg="no longer so: first" reason=Bad kind=Ingress namespace=shop name=web field=spec file=a.yaml`}},
		{"come back", []k8s.Notice{a, changed}, []string{
			`level=ERROR msg=first reason=Bad kind=Ingress namespace=shop name=web field=spec file=a.yaml line=3`}},
	} {
		out.Reset()
		l.update(step.in)
		got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if out.Len() == 0 {
			got = nil
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("%s: logged\n%s\nwant\n%s", step.name, strings.Join(got, "\n"), strings.Join(step.want, "\n"))
		}
	}
}
