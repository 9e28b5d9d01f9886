// Package cases holds the behaviour cases: each test is named after its case
// and runs the whole program between byte-exact clients and backends.
package cases

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirproxy/weir/tests/rig"
)

// world is an agent with recorders as backends, by name.
type world struct {
	*rig.Agent
	t    *testing.T
	pods map[string]*rig.Recorder
}

// newWorld starts an agent with ingresses, and a Service with one recorder for
// each name; "t2/x" puts service x into namespace t2, others are in t1. Every
// Ingress without age is made younger than those before it.
func newWorld(t *testing.T, names string, ingresses []rig.Object, flags ...string) *world {
	t.Helper()
	w := &world{t: t, pods: map[string]*rig.Recorder{}}
	var objects []rig.Object
	for _, full := range strings.Fields(names) {
		ns, name, ok := strings.Cut(full, "/")
		if !ok {
			ns, name = "t1", full
		}
		w.pods[name] = rig.NewRecorder(t, name)
		objects = append(objects, rig.Svc(ns, name, w.pods[name].Addr)...)
	}
	for i, o := range ingresses {
		objects = append(objects, o.Age(i+1))
	}
	w.Agent = rig.StartAgent(t, objects, flags...)
	return w
}

// get is one GET on its own connection.
func (w *world) get(host, target string, fields ...string) *rig.Message {
	w.t.Helper()
	return rig.Do(w.t, w.Addr, "GET", rig.Get(host, target, fields...))
}

// expect fails unless GET host target gives want: a status, or the name of the
// service that must answer 200.
func (w *world) expect(host, target, want string) {
	w.t.Helper()
	if got := outcome(w.get(host, target)); got != want {
		w.t.Errorf("GET %s%s -> %s, want %s", host, target, got, want)
	}
}

func outcome(m *rig.Message) string {
	if m.Status == 200 {
		return string(m.Body)
	}
	return fmt.Sprint(m.Status)
}

// eventually waits until GET host target gives want.
func (w *world) eventually(host, target, want string) {
	w.t.Helper()
	rig.Eventually(w.t, rig.Deadline, "GET "+host+target, func() error {
		m, err := rig.TryGet(w.Addr, host, target)
		if err != nil {
			return err
		}
		if got := outcome(m); got != want {
			return fmt.Errorf("got %s, want %s", got, want)
		}
		return nil
	})
}

// noticed waits until the agent has a notice that contains all words.
func (w *world) noticed(words ...string) {
	w.t.Helper()
	rig.Eventually(w.t, rig.Deadline, "notice", func() error {
		_, body, err := w.AdminGet("/debug/notices")
		for _, word := range words {
			if err == nil && !strings.Contains(body, word) {
				err = fmt.Errorf("%q is missing in %s", word, body)
			}
		}
		return err
	})
}

// untouched fails if a recorder received a byte.
func untouched(t *testing.T, b *rig.Recorder) {
	t.Helper()
	if n := b.Bytes(); n != 0 {
		t.Errorf("backend %s received %d bytes, want none: %q", b.Name, n, b.Received())
	}
}

// sameport starts recorders that share a port, on 127.0.0.11 and following.
func sameport(t *testing.T, names ...string) (pods []*rig.Recorder, port int) {
	t.Helper()
	first, err := rig.FreeAddr(netip.MustParseAddr("127.0.0.11"))
	if err != nil {
		t.Fatal(err)
	}
	ip := first.Addr()
	for _, name := range names {
		pods = append(pods, rig.NewRecorderAt(t, name, netip.AddrPortFrom(ip, first.Port())))
		ip = ip.Next()
	}
	return pods, int(first.Port())
}

// ip is the address of sameport's recorder n, from 1.
func ip(n int) string { return fmt.Sprintf("127.0.0.%d", 10+n) }
