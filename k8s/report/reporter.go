package report

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/k8s"
)

// Reporter takes part in the election and writes while it leads. It may run once.
type Reporter struct {
	config     Config
	view       View // set by Run
	api        api
	log        *complaints
	election   *election
	presence   *presence
	neighbours *neighbours // the leader's, or at the end any agent's
	stats      counters

	gate       gate
	statusRate *rate.Limiter
	eventRate  *rate.Limiter

	mu       sync.Mutex
	admitted []types.NamespacedName
	notices  []k8s.Notice
	fresh    bool                          // the two above were not handed over
	dirty    map[types.NamespacedName]bool // Ingresses whose status changed
	own      []string                      // addresses of the own node
	ownTold  chan struct{}                 // capacity 1: they were looked up
	told     chan struct{}                 // capacity 1: something of these changed
	first    chan struct{}                 // closed by the first Set
	begin    sync.Once

	killed chan struct{} // closed by Kill
	kill   sync.Once
}

// New returns a reporter that has written nothing yet. It sends no request.
func New(c Config) (*Reporter, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	a, err := newServer(c.API, c.Agent)
	if err != nil {
		return nil, err
	}
	return newReporter(c, a), nil
}

// newReporter returns a reporter of a complete configuration.
func newReporter(c Config, a api) *Reporter {
	r := &Reporter{
		config: c, api: a, log: &complaints{logger: c.Logger},
		statusRate: rate.NewLimiter(rate.Limit(c.Rate), c.Rate*5/2),
		eventRate:  rate.NewLimiter(rate.Limit(c.Rate), c.Rate*5/2),
		dirty:      make(map[types.NamespacedName]bool),
		told:       make(chan struct{}, 1),
		ownTold:    make(chan struct{}, 1),
		first:      make(chan struct{}),
		killed:     make(chan struct{}),
	}
	r.election = newElection(a, types.NamespacedName{Namespace: c.Namespace, Name: c.Lease}, c.Identity, r.log)
	r.presence = newPresence(a, &r.config, r.log)
	r.neighbours = newNeighbours(a, &r.config, r.log, r.presence.name())
	return r
}

// Set replaces what is to be reported: the Ingresses that are served, in part at
// least, and all notices in force. Neither may be edited afterwards. It returns at
// once. Any goroutine may call it.
func (r *Reporter) Set(admitted []types.NamespacedName, notices []k8s.Notice) {
	r.mu.Lock()
	r.admitted, r.notices, r.fresh = admitted, notices, true
	r.mu.Unlock()
	r.begin.Do(func() { close(r.first) })
	r.wake()
}

// StatusChanged tells that the status of an Ingress is another one. It returns at
// once. Any goroutine may call it.
func (r *Reporter) StatusChanged(key types.NamespacedName) {
	if !r.election.leading.Load() {
		return // who begins to lead looks at all
	}
	r.mu.Lock()
	r.dirty[key] = true
	r.mu.Unlock()
	r.wake()
}

func (r *Reporter) wake() {
	select {
	case r.told <- struct{}{}:
	default:
	}
}

// Kill ends what Run does after its context has ended. Any goroutine may call it.
func (r *Reporter) Kill() { r.kill.Do(func() { close(r.killed) }) }

// gather is how long changes are collected before they are looked at.
const gather = 200 * time.Millisecond

// Run waits for the first Set, then takes part in the election until ctx ends.
// After that it does what belongs to the end of the agent, which takes up to 30 s
// unless Kill cuts it short, and gives up the lead. The error is always nil:
// trouble with the API server is logged and counted, and what could not be written
// is tried again.
func (r *Reporter) Run(ctx context.Context, view View) error {
	r.view = view
	select {
	case <-r.first:
	case <-ctx.Done():
		return nil
	}
	alive, die := context.WithCancel(context.WithoutCancel(ctx))
	defer die()
	go func() {
		select {
		case <-r.killed:
			die()
		case <-alive.Done():
		}
	}()
	gone := make(chan struct{}) // closed when this agent has said that it leaves
	go func() {
		defer close(gone)
		if r.config.Publish.nodes() || r.clears() {
			r.presence.run(ctx, alive, r.setOwn)
		}
	}()
	r.election.run(ctx, alive,
		func(ctx, term context.Context) { r.lead(ctx, term, gone) },
		func() bool {
			<-gone
			return r.clears() && r.neighbours.alone(alive)
		})
	<-gone
	return nil
}

// clears reports whether the last agent removes what stands in the status.
func (r *Reporter) clears() bool { return r.config.Publish.Status && r.config.Publish.ClearAtEnd }

// setOwn takes the addresses of the own node.
func (r *Reporter) setOwn(addresses []string) {
	r.mu.Lock()
	changed := r.own == nil || !slices.Equal(r.own, addresses)
	r.own = append([]string{}, addresses...) // not nil
	r.mu.Unlock()
	if !changed {
		return
	}
	select {
	case r.ownTold <- struct{}{}:
	default:
	}
}

// lead writes until ctx ends, or at once stops when term does.
func (r *Reporter) lead(ctx, term context.Context, gone <-chan struct{}) {
	working, stop := context.WithCancel(term)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	events := newEvents(r)
	var all sync.WaitGroup
	all.Go(func() { events.run(working) })
	var statuses *statuses // nil: they are not our business
	if r.config.Publish.Status {
		statuses = newStatuses(r)
		all.Go(func() { statuses.run(working) })
		all.Go(func() { r.findAddresses(working, statuses.setAddresses) })
	}
	r.mu.Lock()
	r.fresh = true
	r.mu.Unlock()
	for working.Err() == nil {
		r.feed(statuses, events)
		select {
		case <-working.Done():
		case <-r.told:
			pause(working, gather)
		}
	}
	all.Wait()
	r.stats.addresses.Store(0)
	r.stats.eventsWanted.Store(0)
	if term.Err() != nil || !r.clears() {
		return
	}
	<-gone
	if r.lastOne(term) {
		r.feed(statuses, events)
		statuses.farewell(term)
	}
}

// feed hands over what changed; s may be nil.
func (r *Reporter) feed(s *statuses, e *events) {
	r.mu.Lock()
	admitted, notices, dirty, fresh := r.admitted, r.notices, r.dirty, r.fresh
	r.dirty, r.fresh = make(map[types.NamespacedName]bool), false
	r.mu.Unlock()
	if fresh {
		e.set(notices)
	}
	if s == nil {
		return
	}
	if fresh {
		s.setAdmitted(admitted)
	}
	for key := range dirty {
		s.changed(key)
	}
}

// findAddresses tells what is to be published, and again whenever it changes, until
// ctx ends.
func (r *Reporter) findAddresses(ctx context.Context, told func([]string)) {
	p := r.config.Publish
	switch {
	case len(p.Addresses) > 0:
		told(p.Addresses)
	case p.Service != "":
		followService(ctx, r, told)
	default:
		r.followNodes(ctx, told)
	}
}

// followNodes tells the addresses of the nodes that run Weir.
func (r *Reporter) followNodes(ctx context.Context, told func([]string)) {
	const what = "list the Leases of the agents"
	r.mu.Lock()
	known := r.own != nil
	r.mu.Unlock()
	if !known {
		select {
		case <-ctx.Done():
		case <-r.ownTold:
		}
	}
	failures := 0
	for ctx.Err() == nil {
		list, err := r.neighbours.addresses(ctx)
		if err != nil {
			if ctx.Err() == nil {
				failures++
				r.log.failed(what, err)
				pause(ctx, backoff(failures, lookFirst, lookMost))
			}
			continue
		}
		failures = 0
		r.log.worked(what)
		r.mu.Lock()
		list = append(list, r.own...)
		r.mu.Unlock()
		told(list)
		timer := time.NewTimer(backoff(1, presenceEvery, presenceEvery))
		select {
		case <-ctx.Done():
		case <-r.ownTold:
		case <-timer.C:
		}
		timer.Stop()
	}
}
