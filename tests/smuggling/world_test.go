// Package smuggling sends every HTTP/1 row of the catalogue of request
// smuggling through the whole program and plays backends that attack it.
//
// A refused message must get its status and a closed connection, the backend
// must not see a byte of it, and an innocent request, on the same connection or
// on another, must never receive an answer that belongs to somebody else.
package smuggling

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

const host = "a.example.test"

// world is an agent in front of one recorder that answers with the target of
// each request, so that a mixed-up answer shows.
type world struct {
	*rig.Agent
	backend *rig.Recorder
}

// newWorld starts it. One worker: all requests share its pool.
func newWorld(t *testing.T) *world {
	t.Helper()
	b := rig.NewRecorder(t, "a").Handle(echoTarget)
	objects := append(rig.Svc("t1", "a", b.Addr), rig.Ingress("t1", "i", rig.R(host, "/", "Prefix", "a")))
	return &world{Agent: rig.StartAgent(t, objects, "--workers", "1"), backend: b}
}

func echoTarget(x *rig.Exchange) {
	_, target, _ := strings.Cut(x.Line(), " ")
	x.Answer(200, "answer to "+target)
}

// innocent sends a harmless request on a new connection; it must get its own
// answer.
func (w *world) innocent(t *testing.T, id string) {
	t.Helper()
	m := rig.Do(t, w.Addr, "GET", rig.Get(host, "/innocent-"+id))
	if got, want := string(m.Body), "answer to /innocent-"+id; m.Status != 200 || got != want {
		t.Errorf("innocent request got %d %q, want 200 %q", m.Status, got, want)
	}
}

// refused sends payload with an innocent request right behind it on the same
// connection, and expects one answer with one of statuses, the end of the
// connection, and no byte at the backend.
func (w *world) refused(t *testing.T, payload string, statuses ...int) {
	t.Helper()
	w.backend.Forget()
	c := rig.Dial(t, w.Addr)
	defer c.Close()
	// The peer may close before it has taken everything.
	sent := c.TrySend(payload + rig.Get(host, "/behind"))
	m, err := c.TryRead("GET", 3*time.Second)
	if err != nil {
		t.Errorf("answer: %+v, %v (send: %v), want %v", m, err, sent, statuses)
		return
	}
	if !slices.Contains(statuses, m.Status) {
		t.Errorf("status %d, want %v", m.Status, statuses)
	}
	if got := m.Value("Server"); got != "weir" {
		t.Errorf("answer of server %q, want weir's own", got)
	}
	c.ExpectClosed(rig.Deadline)
	if n := w.backend.Bytes(); n != 0 {
		t.Errorf("backend saw %d bytes: %q", n, w.backend.Received())
	}
	w.innocent(t, "after")
}

// accepted sends payload and expects 200 and, at the backend, a request that
// contains all of want and none of not.
func (w *world) accepted(t *testing.T, payload string, want, not []string) {
	t.Helper()
	w.backend.Forget()
	c := rig.Dial(t, w.Addr)
	defer c.Close()
	c.Send(payload)
	if m := c.Read("GET"); m.Status != 200 {
		t.Errorf("status %d, want 200", m.Status)
		return
	}
	raw := w.backend.Last(t).Raw
	for _, s := range want {
		if !strings.Contains(raw, s) {
			t.Errorf("backend saw %q, want %q in it", raw, s)
		}
	}
	for _, s := range not {
		if strings.Contains(strings.ToLower(raw), strings.ToLower(s)) {
			t.Errorf("backend saw %q, want no %q in it", raw, s)
		}
	}
	c.Send(rig.Get(host, "/behind"))
	if m := c.Read("GET"); string(m.Body) != "answer to /behind" {
		t.Errorf("request behind it got %d %q", m.Status, m.Body)
	}
	if n := len(w.backend.Requests()); n != 2 {
		t.Errorf("backend saw %d requests, want 2: %q", n, w.backend.Received())
	}
	w.innocent(t, "after")
}

// post returns a POST with lines as its fields and body behind the head.
func post(body string, lines ...string) string {
	return rig.Lines(append([]string{"POST /p HTTP/1.1", "Host: " + host}, lines...)...) + body
}

// get returns a GET with lines as its fields.
func get(lines ...string) string { return rig.Get(host, "/p", lines...) }

// row is a payload of the catalogue and the statuses that may answer it.
type row struct {
	name, payload string
	statuses      []int
}

func r400(name, payload string) row { return row{name, payload, []int{400}} }

// run runs rows against one world.
func run(t *testing.T, rows []row) {
	w := newWorld(t)
	for i, r := range rows {
		t.Run(fmt.Sprintf("%02d %s", i, r.name), func(t *testing.T) { w.refused(t, r.payload, r.statuses...) })
	}
}

// badChunks sends a POST whose chunks are bad, with a request behind it.
func (w *world) badChunks(t *testing.T, chunks string) {
	t.Helper()
	w.backend.Forget()
	c := rig.Dial(t, w.Addr)
	defer c.Close()
	c.TrySend(post(chunks, "Transfer-Encoding: chunked") + rig.Get(host, "/behind"))
	m, err := c.TryRead("POST", 3*time.Second)
	if err != nil || m.Status != 400 {
		t.Errorf("answer %+v, %v, want 400", m, err)
		return
	}
	c.ExpectClosed(rig.Deadline)
	seen := w.backend.Received()
	if strings.Contains(seen, "/behind") || strings.HasSuffix(seen, "0\r\n\r\n") {
		t.Errorf("backend saw more than the beginning of a body: %q", seen)
	}
	w.innocent(t, "after")
	for _, r := range w.backend.Requests() {
		if r.Line() == "POST /p" && strings.HasSuffix(r.Raw, "0\r\n\r\n") {
			t.Errorf("backend saw a complete request: %q", r.Raw)
		}
	}
}
