package report

import (
	"context"
	cryptorand "crypto/rand"
	"math/rand/v2"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The times of the election. A leader that can't renew stops leaseDuration -
// renewDeadline before anybody else may begin. They are measured by the monotonic
// clock of each agent: what the wall clocks say decides nothing.
const (
	leaseDuration = 15 * time.Second
	renewEvery    = 5 * time.Second
	renewDeadline = 10 * time.Second
	renewRetry    = time.Second
	leaseTimeout  = 5 * time.Second // of one request
	lookFirst     = 2 * time.Second // between attempts that fail, doubled up to
	lookMost      = time.Minute
	lookSpread    = 3 * time.Second // so that many agents don't look at once
)

// election makes one agent the leader.
//
// Those that don't lead look at the Lease about once in its duration, in the API
// server's cache: a thousand of them cost it some sixty cheap reads a second. The
// price is that it takes up to 36 s until a leader that died is replaced, and 18 s
// if it gave up the Lease, which only delays statuses and Events.
type election struct {
	api      api
	key      types.NamespacedName
	identity string
	log      *complaints
	leading  atomic.Bool

	// What was seen last, by the goroutine of run.
	seen   string    // resource version
	seenAt time.Time // since when it stands
	lease  *coordinationv1.Lease
	renews time.Time // when the last renewal that succeeded was sent
}

// newElection returns an election in which identity takes part under a name that
// nobody else has, not even a later run of the same pod.
func newElection(a api, key types.NamespacedName, identity string, log *complaints) *election {
	return &election{api: a, key: key, identity: identity + "_" + cryptorand.Text()[:10], log: log}
}

// run calls lead whenever this agent leads, until ctx ends; lead's term ends when
// the Lease is lost, and lead must return then, or some time after ctx ended.
// One that does not lead when ctx ends leads once more if the Lease is free and
// last says that nobody else is left to do what is to be done at the end. The end
// of alive ends everything at once.
func (e *election) run(ctx, alive context.Context, lead func(ctx, term context.Context), last func() bool) {
	for e.campaign(ctx) {
		e.term(ctx, alive, lead)
		if ctx.Err() != nil {
			return
		}
	}
	if last() {
		final, cancel := context.WithTimeout(alive, leaseTimeout)
		defer cancel()
		if won, err := e.look(final, false); won && err == nil {
			e.term(ctx, alive, lead)
		}
	}
}

// campaign returns true when the Lease was won, false when ctx ended.
func (e *election) campaign(ctx context.Context) bool {
	failures := 0
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, leaseTimeout)
		won, err := e.look(try, true)
		cancel()
		switch {
		case ctx.Err() != nil && !won:
			return false
		case err != nil:
			failures++
			e.log.failed("take part in the election by Lease "+e.key.String(), err)
			pause(ctx, backoff(failures, lookFirst, lookMost))
			continue
		}
		failures = 0
		e.log.worked("take part in the election by Lease " + e.key.String())
		if won {
			return true
		}
		pause(ctx, leaseDuration+rand.N(lookSpread))
	}
	return false
}

// look takes the Lease if it is free. That somebody else was faster is no error.
func (e *election) look(ctx context.Context, cached bool) (won bool, err error) {
	l, err := e.api.lease(ctx, e.key, cached)
	if apierrors.IsNotFound(err) {
		return e.take(ctx, nil)
	}
	if err != nil {
		return false, err
	}
	if !e.free(l) {
		return false, nil
	}
	if cached { // what is free in the cache may be taken by now
		if l, err = e.api.lease(ctx, e.key, false); err != nil || !e.free(l) {
			return false, err
		}
	}
	return e.take(ctx, l)
}

// free reports whether nobody holds l: it was released, or it did not change for
// its duration.
func (e *election) free(l *coordinationv1.Lease) bool {
	if l.ResourceVersion != e.seen {
		e.seen, e.seenAt = l.ResourceVersion, time.Now()
	}
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
		return true
	}
	d := leaseDuration
	if s := l.Spec.LeaseDurationSeconds; s != nil {
		d = max(d, min(time.Duration(*s)*time.Second, time.Minute))
	}
	return time.Since(e.seenAt) >= d
}

// take writes this agent into the Lease, which was read as l or, if nil, is not
// there.
func (e *election) take(ctx context.Context, l *coordinationv1.Lease) (won bool, err error) {
	sent := time.Now()
	if l == nil {
		l = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: e.key.Namespace, Name: e.key.Name}}
		e.fill(l)
		l, err = e.api.createLease(ctx, l)
	} else {
		l = l.DeepCopy()
		transitions := int32(1)
		if n := l.Spec.LeaseTransitions; n != nil {
			transitions += *n
		}
		l.Spec.LeaseTransitions = &transitions
		e.fill(l)
		l, err = e.api.updateLease(ctx, l)
	}
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, err
	}
	e.lease, e.renews = l, sent
	return true, nil
}

// fill makes l one that this agent has just taken.
func (e *election) fill(l *coordinationv1.Lease) {
	seconds := int32(leaseDuration / time.Second)
	now := metav1.NowMicro()
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &e.identity, &seconds
	l.Spec.AcquireTime, l.Spec.RenewTime = &now, &now
}

// term leads until the Lease is lost or lead returns, then gives it up.
func (e *election) term(ctx, alive context.Context, lead func(ctx, term context.Context)) {
	e.leading.Store(true)
	e.log.logger.Info("leads: writes statuses and Events", "lease", e.key.String(), "identity", e.identity)
	term, lose := context.WithCancel(alive)
	defer lose()
	done := make(chan struct{})
	go func() {
		defer close(done)
		lead(ctx, term)
	}()
	kept := e.hold(term, done)
	lose()
	e.leading.Store(false)
	<-done
	if kept {
		e.release(alive)
	} else {
		e.log.logger.Warn("leads no more: the Lease could not be renewed or was taken", "lease", e.key.String())
	}
}

// hold renews the Lease until done; false if it was lost.
func (e *election) hold(ctx context.Context, done <-chan struct{}) bool {
	wait := renewEvery
	for {
		timer := time.NewTimer(wait)
		select {
		case <-done:
			timer.Stop()
			return true
		case <-timer.C:
		}
		lost, err := e.renew(ctx)
		if lost {
			return false
		}
		wait = renewEvery
		if err != nil {
			e.log.failed("renew Lease "+e.key.String(), err)
			wait = min(renewRetry, time.Until(e.renews.Add(renewDeadline)))
			if wait <= 0 {
				return false
			}
		}
	}
}

// renew renews the Lease; lost if it is somebody else's.
func (e *election) renew(ctx context.Context) (lost bool, err error) {
	sent := time.Now()
	deadline := e.renews.Add(renewDeadline)
	if limit := sent.Add(leaseTimeout); limit.Before(deadline) {
		deadline = limit
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	now := metav1.NowMicro()
	l := e.lease.DeepCopy()
	l.Spec.RenewTime = &now
	l, err = e.api.updateLease(ctx, l)
	switch {
	case err == nil:
		e.lease, e.renews = l, sent
		e.log.worked("renew Lease " + e.key.String())
		return false, nil
	case apierrors.IsNotFound(err):
		return true, nil // somebody deleted it: whoever creates it leads
	case !apierrors.IsConflict(err):
		return false, err
	}
	// Written by somebody, or by a renewal of ours whose answer got lost.
	if l, err = e.api.lease(ctx, e.key, false); err != nil {
		return apierrors.IsNotFound(err), err
	}
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity != e.identity {
		return true, nil
	}
	e.lease = l
	return false, errRenewAgain
}

// release lets others take the Lease at once.
func (e *election) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	nobody, second := "", int32(1)
	l := e.lease.DeepCopy()
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &nobody, &second
	if _, err := e.api.updateLease(ctx, l); err != nil {
		e.log.failed("release Lease "+e.key.String(), err)
		return
	}
	e.log.logger.Info("gave up the lead", "lease", e.key.String())
}
