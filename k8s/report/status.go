package report

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// The times of the statuses.
const (
	statusTimeout = 10 * time.Second // of one request
	// statusAgain is the least time between two writes of one status. In it the
	// watch shows what was written.
	statusAgain = 2 * time.Second
	// When somebody else changes what was written, it is written again after
	// contestFirst, then four times that, up to contestMost. A status that stood
	// for contestQuiet begins anew.
	contestFirst = 10 * time.Second
	contestMost  = time.Hour
	contestQuiet = 10 * time.Minute
	// What is refused is tried again after refusedFirst, doubled up to refusedMost.
	refusedFirst = 5 * time.Second
	refusedMost  = 10 * time.Minute

	conflictFirst = 200 * time.Millisecond
	conflictMost  = 30 * time.Second

	writers = 4 // that write at the same time
)

// What is done, for the log.
const (
	whatWrite  = "write the status of Ingresses"
	whatRemove = "remove what stood in the status of Ingresses"
)

// statuses writes those of Ingresses, as long as this agent leads.
type statuses struct {
	*Reporter
	queue workqueue.TypedDelayingInterface[types.NamespacedName]

	mu       sync.Mutex
	admitted map[types.NamespacedName]bool
	want     []networkingv1.IngressLoadBalancerIngress
	version  int // of want
	tracks   map[types.NamespacedName]*track
}

// track is what is known of the writes of one status.
type track struct {
	wroteAt   time.Time
	version   int // of what was written; 0: nothing yet
	contested int // times in a row that somebody changed it
	notBefore time.Time
	conflicts int
	refusals  int
}

func newStatuses(r *Reporter) *statuses {
	return &statuses{
		Reporter: r,
		queue:    workqueue.NewTypedDelayingQueue[types.NamespacedName](),
		admitted: make(map[types.NamespacedName]bool),
		tracks:   make(map[types.NamespacedName]*track),
	}
}

// run writes what is queued until ctx ends.
func (s *statuses) run(ctx context.Context) {
	var all sync.WaitGroup
	for range writers {
		all.Go(func() { s.work(ctx) })
	}
	<-ctx.Done()
	s.queue.ShutDown()
	all.Wait()
}

func (s *statuses) work(ctx context.Context) {
	for {
		key, over := s.queue.Get()
		if over {
			return
		}
		if ctx.Err() == nil {
			if again := s.settle(ctx, key); again > 0 {
				s.queue.AddAfter(key, again)
			}
		}
		s.queue.Done(key)
	}
}

// setAdmitted queues the statuses that differ from what they are to be.
func (s *statuses) setAdmitted(list []types.NamespacedName) {
	now := make(map[types.NamespacedName]bool, len(list))
	for _, key := range list {
		now[key] = true
	}
	s.mu.Lock()
	before := s.admitted
	s.admitted = now
	s.mu.Unlock()
	for key := range before {
		if !now[key] {
			s.queue.Add(key)
		}
	}
	s.check()
}

// setAddresses takes what is to be published. With none, statuses stay as they are.
func (s *statuses) setAddresses(addresses []string) {
	want := balancerEntries(addresses)
	s.stats.addresses.Store(int64(len(want)))
	s.mu.Lock()
	same := s.version > 0 && sameEntries(s.want, want)
	if !same {
		s.want = want
		s.version++
	}
	s.mu.Unlock()
	if same {
		return
	}
	if len(want) == 0 {
		s.config.Logger.Warn("there is no address to publish: the status of Ingresses stays as it is")
	}
	s.check()
	s.checkOthers()
}

// check queues the admitted Ingresses whose status is not what it is to be.
func (s *statuses) check() {
	s.mu.Lock()
	admitted, want := s.admitted, s.want
	s.mu.Unlock()
	if len(want) == 0 {
		return
	}
	for key := range admitted {
		if status, _, ok := s.view.Ingress(key); ok && !sameEntries(status.Ingress, want) {
			s.queue.Add(key)
		}
	}
}

// checkOthers queues the Ingresses that are not admitted but have an address of
// ours: they may be left from a leader before this one.
func (s *statuses) checkOthers() {
	s.mu.Lock()
	admitted, want := s.admitted, s.want
	s.mu.Unlock()
	for _, key := range s.view.Ingresses() {
		if admitted[key] {
			continue
		}
		if status, _, ok := s.view.Ingress(key); ok && overlap(status.Ingress, want) {
			s.queue.Add(key)
		}
	}
}

// changed takes note that the status of an Ingress is another one than before.
func (s *statuses) changed(key types.NamespacedName) {
	s.mu.Lock()
	admitted, want := s.admitted[key], s.want
	s.mu.Unlock()
	status, _, ok := s.view.Ingress(key)
	if ok && (admitted && !sameEntries(status.Ingress, want) || !admitted && overlap(status.Ingress, want)) {
		s.queue.Add(key)
	}
}

// settle makes the status of key what it is to be, and returns when to look at it
// again; 0: not before something changes.
func (s *statuses) settle(ctx context.Context, key types.NamespacedName) (again time.Duration) {
	status, ref, ok := s.view.Ingress(key)
	s.mu.Lock()
	admitted, want, version, t := s.admitted[key], s.want, s.version, s.tracks[key]
	switch {
	case !ok:
		delete(s.tracks, key)
	case t == nil:
		t = new(track)
		s.tracks[key] = t
	}
	s.mu.Unlock()
	switch {
	case !ok:
		return 0
	case !admitted && len(status.Ingress) == 0:
		return 0
	case !admitted:
		if wait := time.Until(t.notBefore); wait > 0 {
			return wait
		}
		return s.remove(ctx, key, t)
	case len(want) == 0:
		return 0
	case sameEntries(status.Ingress, want):
		return 0
	}
	if wait := t.delay(version); wait > 0 {
		if t.contested == 2 {
			s.config.Logger.Warn("another writer changes the status of an Ingress again and again; is another controller in charge of its class?",
				"ingress", key.String())
		}
		return wait
	}
	return s.write(ctx, key, t, version, statusPatch{ref.UID, "", want})
}

// delay returns how long a status that is not what it is to be has to wait.
func (t *track) delay(version int) time.Duration {
	now := time.Now()
	if now.Before(t.notBefore) {
		return t.notBefore.Sub(now)
	}
	since := now.Sub(t.wroteAt)
	switch {
	case t.version == 0:
		return 0
	case since < statusAgain:
		return statusAgain - since
	case t.version != version || t.notBefore.After(t.wroteAt):
		return 0 // new addresses; or it has waited
	}
	if since > contestQuiet {
		t.contested = 0
	}
	d := contestMost
	if t.contested < 8 {
		d = min(d, contestFirst<<(2*t.contested))
	}
	t.contested++
	return t.rest(d)
}

// statusPatch is a merge patch that fails if the object is another one of the same
// name, or if version is not "" and it was changed since.
//
// What is written needs no version: the API declares the list atomic, so it is one
// writer's, and for an Ingress of ours that is Weir.
type statusPatch struct {
	uid     types.UID
	version string
	entries []networkingv1.IngressLoadBalancerIngress // empty: the list goes
}

func (p statusPatch) bytes() []byte {
	type object = map[string]any
	var list any // null removes
	if len(p.entries) > 0 {
		list = p.entries
	}
	metadata := object{"uid": p.uid}
	if p.version != "" {
		metadata["resourceVersion"] = p.version
	}
	b, err := json.Marshal(object{"metadata": metadata, "status": object{"loadBalancer": object{"ingress": list}}})
	if err != nil {
		panic("report: a status has no JSON: " + err.Error())
	}
	return b
}

// outdated reports whether err means that the object is not the one that was seen.
// What the API server calls invalid in a statusPatch is the UID: the rest was checked.
func outdated(err error) bool { return apierrors.IsConflict(err) || apierrors.IsInvalid(err) }

// write sends p and returns when to look at the status again.
func (s *statuses) write(ctx context.Context, key types.NamespacedName, t *track, version int, p statusPatch) time.Duration {
	if !s.gate.wait(ctx) || s.statusRate.Wait(ctx) != nil {
		return 0
	}
	limited, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	err := s.api.patchStatus(limited, key, fieldManager(&s.config), p.bytes())
	if again, failed := s.failed(ctx, whatWrite, key.Namespace, t, err); failed {
		return again
	}
	s.stats.statusWrites.Add(1)
	t.wroteAt, t.version = time.Now(), version
	return 0
}

// failed counts and tells what became of a request in a namespace and returns when
// to try again.
func (s *statuses) failed(ctx context.Context, what, namespace string, t *track, err error) (again time.Duration, failed bool) {
	switch {
	case err == nil:
		t.conflicts, t.refusals = 0, 0
		s.gate.open()
		s.log.workedIn(what, namespace)
		return 0, false
	case ctx.Err() != nil || apierrors.IsNotFound(err):
		return 0, true
	case outdated(err):
		s.gate.open()
		s.stats.statusConflicts.Add(1)
		t.conflicts++
		return t.rest(backoff(t.conflicts, conflictFirst, conflictMost)), true
	}
	s.stats.statusErrors.Add(1)
	s.log.failedIn(what, namespace, err)
	if general(err) {
		s.gate.shut(err)
		return statusAgain, true
	}
	t.refusals++
	return t.rest(backoff(t.refusals, refusedFirst, refusedMost)), true
}

// rest lets nothing be written for d, which it returns.
func (t *track) rest(d time.Duration) time.Duration {
	t.notBefore = time.Now().Add(d)
	return d
}

// remove empties the status of an Ingress that is not admitted, if this
// installation wrote it.
func (s *statuses) remove(ctx context.Context, key types.NamespacedName, t *track) time.Duration {
	if !s.gate.wait(ctx) || s.statusRate.Wait(ctx) != nil {
		return 0
	}
	again, failed := s.failed(ctx, whatRemove, key.Namespace, t, s.clear(ctx, key))
	if !failed {
		t.version = 0
	}
	return again
}

// clear empties the status of an Ingress if the object, as it is now, says that
// this installation wrote it.
func (s *statuses) clear(ctx context.Context, key types.NamespacedName) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	i, err := s.api.ingress(ctx, key)
	if err != nil {
		return err
	}
	manager := fieldManager(&s.config)
	if len(i.Status.LoadBalancer.Ingress) == 0 || !wrote(manager, i.ManagedFields) {
		return nil
	}
	if err = s.api.patchStatus(ctx, key, manager, statusPatch{i.UID, i.ResourceVersion, nil}.bytes()); err == nil {
		s.stats.statusRemovals.Add(1)
	}
	return err
}
