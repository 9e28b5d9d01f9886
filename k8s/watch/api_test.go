package watch

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// api stands in for an API server: lists in pages, watches with history, streams of
// all there is, selectors of names and labels. It answers JSON, over HTTP/1.
type api struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	version  int
	oldest   int                       // versions before are too old to watch from
	objects  map[string]map[key]stored // by resource
	history  []happened
	grown    chan struct{} // closed and replaced at each change
	cut      chan struct{} // closed and replaced to end all watches
	requests []string      // "list ingresses ns name labels" or "watch ..." or "stream ..."
	streams  bool
	page     int // objects of a list's page, 0 all
	// answer, if not nil, may answer a request itself and then returns true.
	answer func(w http.ResponseWriter, r *call) bool
}

type stored struct {
	json   []byte
	labels labels.Set
	at     int
}

type happened struct {
	at       int
	resource string
	kind     string
	key      key
	json     []byte
	labels   labels.Set
}

// call is one request.
type call struct {
	*http.Request
	resource, namespace, name string
	labels                    labels.Selector
	verb                      string // list, watch, stream
}

func (c *call) String() string {
	return strings.TrimSpace(strings.Join(strings.Fields(fmt.Sprint(c.verb, " ", c.resource, " ", c.namespace, " ", c.name, " ", c.labels)), " "))
}

func newAPI(t *testing.T) *api {
	a := &api{t: t, version: 10, objects: make(map[string]map[key]stored), grown: make(chan struct{}), cut: make(chan struct{}), streams: true}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(func() {
		a.endWatches()
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// put stores an object, o.Kind and its version are filled in.
func (a *api) put(resource string, o metav1.Object) {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	o.SetResourceVersion(strconv.Itoa(a.version))
	text, err := json.Marshal(o)
	if err != nil {
		a.t.Fatal(err)
	}
	group, name := "v1", ""
	for _, k := range kinds {
		if k.resource == resource {
			group, name = k.group.String(), k.name
		}
	}
	text = append([]byte(fmt.Sprintf(`{"kind":%q,"apiVersion":%q,`, name, group)), text[1:]...)
	k, event := keyOf(o), "ADDED"
	if a.objects[resource] == nil {
		a.objects[resource] = make(map[key]stored)
	}
	if _, ok := a.objects[resource][k]; ok {
		event = "MODIFIED"
	}
	a.objects[resource][k] = stored{text, o.GetLabels(), a.version}
	a.happen(happened{a.version, resource, event, k, text, o.GetLabels()})
}

func (a *api) remove(resource string, k key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	s := a.objects[resource][k]
	delete(a.objects[resource], k)
	text := strings.Replace(string(s.json), fmt.Sprintf(`"resourceVersion":"%d"`, s.at), fmt.Sprintf(`"resourceVersion":"%d"`, a.version), 1)
	a.happen(happened{a.version, resource, "DELETED", k, []byte(text), s.labels})
}

func (a *api) happen(h happened) {
	a.history = append(a.history, h)
	close(a.grown)
	a.grown = make(chan struct{})
}

// endWatches ends all that run; forget also makes the past too old to go on from.
func (a *api) endWatches() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.cut)
	a.cut = make(chan struct{})
}

func (a *api) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	a.oldest = a.version
}

func (a *api) set(edit func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	edit()
}

// asked returns the requests so far, without duplicates, sorted.
func (a *api) asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(a.requests)))
}

func (a *api) serve(w http.ResponseWriter, r *http.Request) {
	c := &call{Request: r, labels: labels.Everything(), verb: "list"}
	rest := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	rest = rest[slices.IndexFunc(rest, func(s string) bool { return s == "v1" })+1:]
	if rest[0] == "namespaces" && len(rest) > 1 {
		c.namespace, rest = rest[1], rest[2:]
	}
	c.resource = rest[0]
	c.name, _ = strings.CutPrefix(r.FormValue("fieldSelector"), "metadata.name=")
	if s := r.FormValue("labelSelector"); s != "" {
		var err error
		if c.labels, err = labels.Parse(s); err != nil {
			a.t.Errorf("label selector %q: %v", s, err)
		}
	}
	if r.FormValue("watch") != "" {
		c.verb = "watch"
		if r.FormValue("sendInitialEvents") == "true" {
			c.verb = "stream"
		}
	}
	a.mu.Lock()
	a.requests = append(a.requests, c.String())
	answer, streams := a.answer, a.streams
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case answer != nil && answer(w, c):
	case c.verb == "list":
		a.list(w, c)
	case c.verb == "stream" && !streams:
		status(w, http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is forbidden")
	default:
		a.watch(w, c)
	}
}

func (c *call) has(k key, l labels.Set) bool {
	return (c.namespace == "" || c.namespace == k.Namespace) && (c.name == "" || c.name == k.Name) && c.labels.Matches(l)
}

func (a *api) list(w http.ResponseWriter, c *call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var items []string
	for _, k := range slices.SortedFunc(maps.Keys(a.objects[c.resource]), func(x, y key) int { return strings.Compare(x.String(), y.String()) }) {
		if s := a.objects[c.resource][k]; c.has(k, s.labels) {
			items = append(items, string(s.json))
		}
	}
	from, _ := strconv.Atoi(c.FormValue("continue"))
	items = items[min(from, len(items)):]
	more := ""
	if a.page > 0 && len(items) > a.page {
		items, more = items[:a.page], strconv.Itoa(from+a.page)
	}
	name := ""
	for _, k := range kinds {
		if k.resource == c.resource {
			name = fmt.Sprintf(`"kind":"%sList","apiVersion":%q`, k.name, k.group.String())
		}
	}
	fmt.Fprintf(w, `{%s,"metadata":{"resourceVersion":"%d","continue":%q},"items":[%s]}`, name, a.version, more, strings.Join(items, ","))
}

func (a *api) watch(w http.ResponseWriter, c *call) {
	a.mu.Lock()
	from, _ := strconv.Atoi(c.FormValue("resourceVersion"))
	cut, oldest, now := a.cut, a.oldest, a.version
	var first []string
	if c.verb == "stream" {
		from = now
		for k, s := range a.objects[c.resource] {
			if c.has(k, s.labels) {
				first = append(first, event("ADDED", s.json))
			}
		}
		first = append(first, bookmark(c.resource, now, true))
	}
	a.mu.Unlock()
	if from < oldest {
		status(w, http.StatusGone, "Expired", "too old resource version")
		return
	}
	w.WriteHeader(http.StatusOK)
	fmt.Fprint(w, strings.Join(first, ""))
	w.(http.Flusher).Flush()
	for {
		select {
		case <-cut:
			return // what happened since is for the next watch
		default:
		}
		a.mu.Lock()
		grown := a.grown
		var out []string
		for _, h := range a.history {
			if h.at > from && h.resource == c.resource && c.has(h.key, h.labels) {
				out = append(out, event(h.kind, h.json))
			}
		}
		from = a.version
		a.mu.Unlock()
		fmt.Fprint(w, strings.Join(out, ""))
		w.(http.Flusher).Flush()
		select {
		case <-grown:
		case <-cut:
			return
		case <-c.Context().Done():
			return
		}
	}
}

func event(kind string, object []byte) string {
	return fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", kind, object)
}

// bookmark is one of a version; end says that all there was has been sent.
func bookmark(resource string, version int, end bool) string {
	for _, k := range kinds {
		if k.resource != resource {
			continue
		}
		annotations := ""
		if end {
			annotations = fmt.Sprintf(`,"annotations":{%q:"true"}`, metav1.InitialEventsAnnotationKey)
		}
		return event("BOOKMARK", fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"%s}}`, k.name, k.group.String(), version, annotations))
	}
	return ""
}

// status answers an error as an API server does.
func status(w http.ResponseWriter, code int, reason, message string) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":%q,"code":%d}`, reason, message, code)
}

// eventually waits until ok is true and fails after 10 s.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 10 s still not: %s", what)
		}
	}
}

// addresses returns the addresses of slices, by their names.
func addresses(all map[key]*discoveryv1.EndpointSlice) map[string][]string {
	out := make(map[string][]string)
	for k, s := range all {
		out[k.String()] = nil
		if s == nil {
			continue
		}
		for _, e := range s.Endpoints {
			out[k.String()] = append(out[k.String()], e.Addresses...)
		}
	}
	return out
}
