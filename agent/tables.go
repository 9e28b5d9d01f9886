package agent

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/agent/netwatch"
	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/k8s/report"
	"github.com/weirproxy/weir/k8s/watch"
	"github.com/weirproxy/weir/l7/route"
)

// state is what the admin server shows. It is written by the goroutine that
// applies objects and by the agent's start and end, and read by anybody.
type state struct {
	ready        atomic.Bool // the first table was in force and the sockets were bound
	draining     atomic.Bool
	inForce      atomic.Pointer[inForce] // nil before the first table
	updates      atomic.Uint64           // sets of objects applied
	sourceErrors atomic.Uint64
	delays       delays
	watch        func() watch.Stats  // nil without an API server
	report       func() report.Stats // nil likewise
	accept       *accepting          // nil before the sockets are bound
	network      *netwatch.Watcher   // nil: it is not followed
}

// inForce is what the workers serve from. It is immutable, but for the counters
// and the endpoints behind its pointers.
type inForce struct {
	k8s.Result               // Table is never nil
	notices    []k8s.Notice  // of files and objects
	built      time.Duration // that the last new table took
	since      time.Time     // of the last new table
}

// missing says what a source has not read yet, a line for each kind.
func (s *state) missing() string {
	if s.watch == nil {
		return ""
	}
	var out strings.Builder
	for _, k := range s.watch().Kinds {
		if k.Synced {
			continue
		}
		fmt.Fprintf(&out, "%s is not read yet", k.Kind)
		if k.Failure != "" {
			fmt.Fprintf(&out, ": %s", k.Failure)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// dataPath is the part of l7.Server that takes changes.
type dataPath interface {
	SetTable(*route.Table)
	EndpointsChanged()
	Measure(seen time.Time)
}

// tables brings sets of objects, and what is known of the node's network, to the
// data path.
type tables struct {
	path     dataPath
	state    *state
	logger   *slog.Logger
	first    chan struct{}    // closed when the first table is in force
	reporter *report.Reporter // nil: nothing is reported

	mu         sync.Mutex // for what follows: one change at a time is put in force
	translator *k8s.Translator
	log        noticeLog
	ofSource   []k8s.Notice
}

func newTables(o k8s.Options, path dataPath, s *state, logger *slog.Logger) *tables {
	return &tables{
		translator: k8s.NewTranslator(o),
		path:       path,
		state:      s,
		logger:     logger,
		log:        noticeLog{logger: logger},
		first:      make(chan struct{}),
	}
}

// started reports whether a table is in force.
func (t *tables) started() bool { return t.state.inForce.Load() != nil }

// apply puts a change in force.
func (t *tables) apply(c k8s.Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	start := time.Now()
	if c.Objects != nil {
		t.take(t.translator.Apply(c.Objects), c, start)
	} else {
		t.take(t.translator.ApplySlices(c.Slices), c, start)
	}
	t.state.updates.Add(1)
}

// applyLost puts in force what the node's network tells of addresses: that they are
// cut off, or no longer so.
func (t *tables) applyLost(addresses []netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.started() {
		return
	}
	start := time.Now()
	r := t.translator.ApplyLost(addresses)
	t.take(r, k8s.Change{}, start)
	if r.EndpointsChanged > 0 {
		t.logger.Info("pods of this node are cut off, or no longer so", "addresses", addresses, "clusters", r.EndpointsChanged)
	}
}

// take puts in force what the translator made of c.
func (t *tables) take(r k8s.Result, c k8s.Change, start time.Time) {
	before := t.state.inForce.Load()
	next := &inForce{Result: r}
	if before == nil && next.Table == nil {
		t.logger.Error("the first set of objects gave no table")
		return
	}
	noticed := t.takeNotices(next, before, c)
	fresh := next.Table != nil
	t.publish(next, before, c, start)
	t.state.inForce.Store(next)
	if noticed {
		t.log.update(next.notices)
	}
	if t.reporter != nil && (noticed || c.Objects != nil) {
		t.reporter.Set(next.Admitted, next.notices)
	}
	if fresh {
		t.logger.Info("new table", "version", next.Table.Version, "ingresses", next.Ingresses, "hosts", next.Hosts,
			"routes", next.Routes, "clusters", next.Clusters, "notices", len(next.notices), "took", next.built)
	} else {
		t.logger.Debug("endpoints replaced", "clusters", next.EndpointsChanged)
	}
	if before == nil {
		close(t.first)
	}
}

// publish hands what c changed to the data path and completes next. Endpoints are
// in force already.
func (t *tables) publish(next, before *inForce, c k8s.Change, start time.Time) {
	fresh := next.Table != nil
	if !fresh {
		next.Table, next.since, next.built = before.Table, before.since, before.built
		if next.EndpointsChanged == 0 {
			return
		}
	}
	measured := before != nil && !c.Seen.IsZero()
	now := time.Now()
	if measured && c.Objects == nil { // a table needs no taking over
		t.path.Measure(c.Seen)
	}
	if fresh {
		t.path.SetTable(next.Table)
		now = time.Now()
		next.since, next.built = now, now.Sub(start)
	}
	t.path.EndpointsChanged()
	if measured {
		t.state.delays.observe(c, now)
	}
}

// takeNotices fills in the notices of next and reports whether they differ from
// those before.
func (t *tables) takeNotices(next, before *inForce, c k8s.Change) bool {
	if before != nil && !next.NoticesChanged && (c.Objects == nil || slices.Equal(c.Notices, t.ofSource)) {
		next.notices = before.notices
		return false
	}
	if c.Objects != nil {
		t.ofSource = c.Notices
	}
	next.notices = slices.Concat(t.ofSource, next.Notices)
	return true
}
