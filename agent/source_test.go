package agent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/l7"
)

// script is a source whose runs are given one by one; behind the last it waits.
type script struct {
	runs []func(ctx context.Context, changed func(k8s.Change)) error
	next int
}

func (s *script) Run(ctx context.Context, changed func(k8s.Change)) error {
	if s.next == len(s.runs) {
		<-ctx.Done()
		return nil
	}
	s.next++
	return s.runs[s.next-1](ctx, changed)
}

// idlePath is a data path that does nothing.
func idlePath() *recorder { return &recorder{onCall: func() {}} }

func broken(context.Context, func(k8s.Change)) error { return errors.New("it broke") }

func once(_ context.Context, changed func(k8s.Change)) error {
	changed(k8s.Change{Objects: k8s.NewObjects()})
	return nil
}

func TestASourceThatBreaksAtFirstIsAnError(t *testing.T) {
	s := new(state)
	a := &agent{config: Config{Logger: discard()}, sourceName: "/m", state: s, source: &script{runs: []func(context.Context, func(k8s.Change)) error{broken}},
		tables: newTables(k8s.Options{Workers: 1}, idlePath(), s, discard())}
	if err := a.follow(t.Context()); err == nil || !strings.Contains(err.Error(), "/m: it broke") {
		t.Errorf("follow = %v, want the source's error", err)
	}
}

func TestASourceThatBreaksLaterIsReadAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(state)
		source := &script{runs: []func(context.Context, func(k8s.Change)) error{once, broken, once}}
		a := &agent{config: Config{Logger: discard()}, state: s, source: source,
			tables: newTables(k8s.Options{Workers: 1}, idlePath(), s, discard())}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		start := time.Now()
		go func() { done <- a.follow(ctx) }()
		time.Sleep(10 * retryAfter)
		synctest.Wait()
		if s.updates.Load() != 2 || s.sourceErrors.Load() != 3 || source.next != 3 {
			t.Errorf("after %s: %d updates, %d errors, %d runs; want 2, 3, 3", time.Since(start), s.updates.Load(), s.sourceErrors.Load(), source.next)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("follow = %v, want nil", err)
		}
	})
}

// gated starts an agent whose source delivers nothing before gate is closed.
func gated(t *testing.T, gate chan struct{}) (a *agent, adminListener net.Listener) {
	t.Helper()
	leaksNothing(t)
	server, err := l7.New(l7.Config{Addresses: []netip.AddrPort{addr("127.0.0.1:0")}, Workers: 1, Logger: discard()})
	if err != nil {
		t.Fatal(err)
	}
	wait := func(ctx context.Context, changed func(k8s.Change)) error {
		select {
		case <-gate:
			changed(k8s.Change{Objects: k8s.NewObjects()})
		case <-ctx.Done():
		}
		<-ctx.Done()
		return nil
	}
	s := new(state)
	a = &agent{config: Config{Logger: discard(), Build: &Build{}}, server: server, state: s,
		source: &script{runs: []func(context.Context, func(k8s.Change)) error{wait}},
		tables: newTables(k8s.Options{Workers: 1}, server, s, discard())}
	adminListener, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return a, adminListener
}

// Before the first table the sockets take connections, but no request is
// answered and the agent is not ready; nobody sees a 404 of an empty table.
func TestReadyOnlyAfterTheFirstTable(t *testing.T) {
	gate := make(chan struct{})
	a, l := gated(t, gate)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	done := make(chan error, 1)
	r := &running{}
	admin, site := "http://"+l.Addr().String(), "http://"+a.server.Addresses()[0].String()
	go func() { done <- a.run(ctx, l) }()
	if status, body := r.get(admin+"/readyz", ""); status != 503 || !strings.HasPrefix(body, "waiting") {
		t.Errorf("/readyz before the first table = %d %q, want 503", status, body)
	}
	if status, _ := r.get(admin+"/healthz", ""); status != 200 {
		t.Errorf("/healthz before the first table = %d, want 200", status)
	}
	answered := make(chan int, 1)
	go func() {
		status, _ := r.get(site+"/", "a.example")
		answered <- status
	}()
	select {
	case status := <-answered:
		t.Fatalf("a request before the first table was answered %d", status)
	case <-time.After(50 * time.Millisecond):
	}
	close(gate)
	if status := <-answered; status != 404 {
		t.Errorf("the request was answered %d after the first, empty table, want 404", status)
	}
	if status, body := r.get(admin+"/readyz", ""); status != 200 {
		t.Errorf("/readyz = %d %q after the first table, want 200", status, body)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("run = %v, want nil", err)
	}
}

func TestEndBeforeTheFirstTable(t *testing.T) {
	a, l := gated(t, nil)
	site := a.server.Addresses()[0].String()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.run(ctx, l) }()
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("run = %v, want nil", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("run did not end within 10 s")
	}
	if c, err := net.Dial("tcp", site); err == nil {
		c.Close()
		t.Errorf("%s still takes connections", site)
	}
}
