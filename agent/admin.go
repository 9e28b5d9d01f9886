package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirproxy/weir/l7"
)

// index is what GET / answers.
const index = `Weir, node agent

/metrics         Prometheus metrics
/healthz         200 while every worker can turn its loop
/readyz          200 once a full table is in force, until the drain begins
/debug/table     hosts, routes, clusters and endpoints in force (JSON)
/debug/workers   counters of the data path (JSON)
/debug/notices   what is wrong with objects and files (JSON)
/debug/source    what was read from the API server (JSON)
/debug/pprof/    profiles of the Go runtime
/accept-policy   which worker gets a new connection, and why (JSON); PUT hash, cpu or least-loaded changes it
`

// admin answers about an agent. Nothing that it shows is secret: objects of kind
// Secret never reach it.
type admin struct {
	state  *state
	stats  func() l7.Stats
	wake   func() // makes every worker turn its loop
	logger *slog.Logger
	small  prometheus.Gatherer // all metrics but those of routes and clusters
}

func newAdmin(s *state, stats func() l7.Stats, wake func(), build Build, logger *slog.Logger) *admin {
	return &admin{state: s, stats: stats, wake: wake, small: newRegistry(s, stats, build), logger: logger}
}

// handler returns all pages. They are for reading, but for one that is PUT too.
func (a *admin) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, index) })
	mux.HandleFunc("/metrics", a.metrics)
	mux.HandleFunc("/healthz", a.healthz)
	mux.HandleFunc("/readyz", a.readyz)
	mux.HandleFunc("/debug/table", a.table)
	mux.HandleFunc("/debug/workers", a.workers)
	mux.HandleFunc("/debug/notices", a.notices)
	mux.HandleFunc("/debug/source", a.source)
	mux.HandleFunc("/accept-policy", a.acceptPolicy)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allow := "GET, HEAD"
		if r.URL.Path == "/accept-policy" {
			allow += ", PUT"
		}
		if !slices.Contains(strings.Split(allow, ", "), r.Method) {
			w.Header().Set("Allow", allow)
			text(w, http.StatusMethodNotAllowed, "only "+allow+"\n")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func text(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

// readyz answers 503 until the first full table is in force and the sockets are
// bound, and again from the moment the drain begins.
func (a *admin) readyz(w http.ResponseWriter, _ *http.Request) {
	switch {
	case a.state.draining.Load():
		text(w, http.StatusServiceUnavailable, "draining\n")
	case !a.state.ready.Load():
		text(w, http.StatusServiceUnavailable, "waiting for the first full table\n"+a.state.missing())
	default:
		text(w, http.StatusOK, "ready\n")
	}
}

func (a *admin) healthz(w http.ResponseWriter, r *http.Request) {
	if stuck := a.stuck(r.Context()); len(stuck) > 0 {
		text(w, http.StatusServiceUnavailable, fmt.Sprintf("workers %v do not turn their loop\n", stuck))
		return
	}
	text(w, http.StatusOK, "ok\n")
}

// serveAdmin answers on l until ctx ends, then gives running answers a second.
// It closes l.
func (a *agent) serveAdmin(ctx context.Context, l net.Listener) error {
	pages := newAdmin(a.state, a.server.Stats, a.server.EndpointsChanged, *a.config.Build, a.config.Logger)
	s := &http.Server{
		Handler:           pages.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      2 * time.Minute, // a profile or trace takes as long as it is asked to
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(a.config.Logger.Handler(), slog.LevelDebug),
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	select {
	case err := <-done:
		return fmt.Errorf("admin server: %w", err)
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := s.Shutdown(limit); err != nil {
		s.Close()
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin server: %w", err)
	}
	return nil
}
