package report

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"golang.org/x/time/rate"

	"github.com/weirproxy/weir/k8s"
)

// The times of Events.
const (
	eventTimeout = 10 * time.Second // of one request
	// eventSettle is how long a notice must stand before it becomes an Event.
	eventSettle = time.Second
	// eventRefresh is when an Event of a notice that lasts is observed again. The
	// API server deletes Events an hour after they were written (--event-ttl).
	eventRefresh = 30 * time.Minute
	// eventReturn is when one is, whose notice went and came back.
	eventReturn = 5 * time.Minute
	// eventRefused is when an Event that was refused is tried again.
	eventRefused = 10 * time.Minute

	// An object may have eventBurst Events at once, then one each eventEvery.
	eventBurst = 10
	eventEvery = 30 * time.Second
	// eventsKnownMax is how many Events whose notice is gone are remembered.
	eventsKnownMax = 10_000

	eventWriters = 2 // that write at the same time
)

// events writes the Events of notices, as long as this agent leads.
type events struct {
	*Reporter
	queue workqueue.TypedDelayingInterface[types.NamespacedName]

	mu      sync.Mutex
	notices []k8s.Notice
	wanted  map[types.NamespacedName]*wanted // by the key of the Event
	written map[types.NamespacedName]*written
	budgets map[subject]*rate.Limiter
	started bool
}

// wanted is a notice that is in force.
type wanted struct {
	notice k8s.Notice
	object corev1.ObjectReference
	// fresh ones came into force under this leader.
	fresh bool
}

// written is an Event that is there, as far as is known.
type written struct {
	count int32
	last  time.Time // observed
}

// subject is an object that Events are about.
type subject struct{ kind, namespace, name string }

func newEvents(r *Reporter) *events {
	return &events{
		Reporter: r,
		queue:    workqueue.NewTypedDelayingQueue[types.NamespacedName](),
		wanted:   make(map[types.NamespacedName]*wanted),
		written:  make(map[types.NamespacedName]*written),
		budgets:  make(map[subject]*rate.Limiter),
	}
}

// run writes what is queued until ctx ends.
func (e *events) run(ctx context.Context) {
	var all sync.WaitGroup
	for range eventWriters {
		all.Go(func() { e.work(ctx) })
	}
	<-ctx.Done()
	e.queue.ShutDown()
	all.Wait()
}

func (e *events) work(ctx context.Context) {
	for {
		key, over := e.queue.Get()
		if over {
			return
		}
		if ctx.Err() == nil {
			if again := e.settle(ctx, key); again > 0 {
				e.queue.AddAfter(key, again)
			}
		}
		e.queue.Done(key)
	}
}

// set takes all notices in force. Those whose object is not known yet are looked at
// again with the next ones that differ.
func (e *events) set(notices []k8s.Notice) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started && slices.Equal(e.notices, notices) {
		return
	}
	before := e.wanted
	e.notices, e.wanted = notices, make(map[types.NamespacedName]*wanted, len(before))
	var keys []types.NamespacedName // new ones, the worst first
	for severity := k8s.Error; ; severity-- {
		for n := range notices {
			if key, ok := e.want(&notices[n], severity); ok && before[key] != nil {
				e.wanted[key] = before[key]
			} else if ok {
				keys = append(keys, key)
			}
		}
		if severity == k8s.Info {
			break
		}
	}
	for n, key := range keys {
		e.queue.AddAfter(key, eventSettle+time.Duration(n)*time.Microsecond) // keeps the order
	}
	e.started = true
	e.forget()
	e.stats.eventsWanted.Store(int64(len(e.wanted)))
}

// want adds n if it is of the given severity and becomes an Event.
func (e *events) want(n *k8s.Notice, severity k8s.Severity) (key types.NamespacedName, ok bool) {
	if n.Severity != severity || !notable(n) {
		return key, false
	}
	object, ok := e.view.Reference(n.Kind, n.Namespace, n.Name)
	if !ok {
		return key, false
	}
	key = eventKey(n, &object)
	e.wanted[key] = &wanted{notice: *n, object: object, fresh: e.started}
	return key, true
}

// forget drops what is known of Events and budgets that nobody needs, when it is
// much.
func (e *events) forget() {
	if len(e.written)-len(e.wanted) > eventsKnownMax {
		for key := range e.written {
			if e.wanted[key] == nil {
				delete(e.written, key)
			}
		}
	}
	if len(e.budgets) > eventsKnownMax {
		for of, b := range e.budgets {
			if b.Tokens() >= eventBurst {
				delete(e.budgets, of)
			}
		}
	}
}

// settle writes the Event key if it is due, and returns when to look at it again; 0:
// not before its notice comes back.
func (e *events) settle(ctx context.Context, key types.NamespacedName) (again time.Duration) {
	e.mu.Lock()
	want, have := e.wanted[key], e.written[key]
	if want == nil {
		delete(e.written, key)
		e.mu.Unlock()
		return 0
	}
	if have != nil && time.Since(have.last) < eventReturn { // its notice went and came back
		e.mu.Unlock()
		return eventReturn - time.Since(have.last)
	}
	wait := e.reserve(subject{want.notice.Kind, want.notice.Namespace, want.notice.Name})
	e.mu.Unlock()
	if wait > 0 {
		e.stats.eventsDelayed.Add(1)
		return wait
	}
	if !e.gate.wait(ctx) || e.eventRate.Wait(ctx) != nil {
		return 0
	}
	limited, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	if have == nil {
		return e.create(limited, key, want)
	}
	return e.refresh(limited, key, want, have)
}

// reserve takes one Event from the budget of an object, or returns when there will
// be one.
func (e *events) reserve(of subject) time.Duration {
	b := e.budgets[of]
	if b == nil {
		b = rate.NewLimiter(rate.Every(eventEvery), eventBurst)
		e.budgets[of] = b
	}
	r := b.Reserve()
	wait := r.Delay()
	if wait > 0 {
		r.Cancel()
		wait += rand.N(eventEvery)
	}
	return wait
}

// create writes a new Event. If it is there, because a leader before this one or
// this one a while ago wrote it, its age decides.
func (e *events) create(ctx context.Context, key types.NamespacedName, want *wanted) time.Duration {
	err := e.api.createEvent(ctx, newEvent(key, &want.notice, &want.object, e.config.Identity))
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return e.failed(ctx, key.Namespace, err)
		}
		return e.wrote(key, 1, time.Now())
	}
	there, err := e.api.patchEvent(ctx, key, []byte("{}")) // reads it, which takes no further right
	if err != nil {
		return e.failed(ctx, key.Namespace, err)
	}
	e.succeeded(key.Namespace)
	count, last := observed(there)
	have := &written{count: count, last: last}
	e.mu.Lock()
	e.written[key] = have
	e.mu.Unlock()
	due := eventRefresh
	if want.fresh {
		due = eventReturn
	}
	if wait := time.Until(last.Add(due)); wait > 0 {
		return min(wait, due)
	}
	return e.refresh(ctx, key, want, have)
}

// refresh observes an Event again.
func (e *events) refresh(ctx context.Context, key types.NamespacedName, want *wanted, have *written) time.Duration {
	_, err := e.api.patchEvent(ctx, key, seriesPatch(have.count+1))
	if apierrors.IsNotFound(err) { // it has had its time
		return e.create(ctx, key, want)
	}
	if err != nil {
		return e.failed(ctx, key.Namespace, err)
	}
	return e.wrote(key, have.count+1, time.Now())
}

// wrote notes that an Event was written and returns when to do so again.
func (e *events) wrote(key types.NamespacedName, count int32, at time.Time) time.Duration {
	e.succeeded(key.Namespace)
	e.stats.eventsSent.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.written[key] = &written{count: count, last: at}
	return backoff(1, eventRefresh, eventRefresh)
}

const whatEvent = "write Events"

func (e *events) succeeded(namespace string) {
	e.gate.open()
	e.log.workedIn(whatEvent, namespace)
}

// failed counts and tells an error, and returns when to try again.
func (e *events) failed(ctx context.Context, namespace string, err error) time.Duration {
	if ctx.Err() == context.Canceled {
		return 0 // this agent leads no more
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return eventRefused // the object goes with its namespace
	}
	e.stats.eventErrors.Add(1)
	e.log.failedIn(whatEvent, namespace, err)
	if general(err) {
		e.gate.shut(err)
		return eventSettle
	}
	return backoff(1, eventRefused, eventRefused)
}
