package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// feed lists and watches what one scope has of one kind, and goes on until its
// context ends.
type feed struct {
	kind    *kind
	scope   scope
	clients *clients
	store   *store
	journal *journal
	gate    chan struct{} // a place in it is held during a sync; nil: no limit
	silence time.Duration // silenceMax, but in tests

	// owned by the goroutine of run
	version string // that the store has; "" none: all has to be read
	stale   bool   // the server does not know the version that the store has
	pause   pause
	said    time.Time // when its failure was logged last, zero if it works
}

// run follows the scope until ctx ends.
func (f *feed) run(ctx context.Context) {
	for {
		lasted, err := f.follow(ctx)
		f.store.lost(f)
		if ctx.Err() != nil {
			return
		}
		f.journal.failed(f, lasted, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(f.pause.after(lasted, err)):
		}
	}
}

// follow reads all there is, if need be, and then changes until that ends. lasted
// is how long the latter went on; err is never nil.
func (f *feed) follow(ctx context.Context) (lasted time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var s *stream
	if f.version == "" {
		if s, err = f.sync(ctx); err != nil {
			return 0, f.expire(err)
		}
	}
	if s == nil {
		if s, err = f.open(ctx, metav1.ListOptions{ResourceVersion: f.version}); err != nil {
			return 0, f.expire(err)
		}
	}
	defer s.close()
	f.store.live(f)
	f.journal.works(f)
	start := time.Now()
	for err == nil {
		var e watch.Event
		if e, err = s.next(ctx); err == nil {
			err = f.take(e)
		}
	}
	return time.Since(start), f.expire(err)
}

// take puts an event of a watch into the store.
func (f *feed) take(e watch.Event) error {
	now := time.Now()
	if e.Type == watch.Bookmark {
		m, err := meta.Accessor(e.Object)
		if err != nil {
			return fmt.Errorf("a bookmark without metadata: %w", err)
		}
		f.version = m.GetResourceVersion()
		f.store.heard(f, now)
		return nil
	}
	k, o, version, err := f.read(e.Object)
	if err != nil {
		return err
	}
	switch e.Type {
	case watch.Added, watch.Modified:
		f.store.put(f, k, o, now)
	case watch.Deleted:
		f.store.remove(f, k, now)
	default:
		return fmt.Errorf("an event of unknown type %q", e.Type)
	}
	f.version = version
	return nil
}

// read returns what is kept of o, and its version.
func (f *feed) read(o runtime.Object) (key, *entry, string, error) {
	m, ok := o.(metav1.Object)
	if !ok {
		return key{}, nil, "", fmt.Errorf("the API server sent a %T for a %s", o, f.kind.name)
	}
	version := m.GetResourceVersion()
	if !f.kind.trim(o) || m.GetName() == "" || version == "" {
		return key{}, nil, "", fmt.Errorf("the API server sent a %T without name or version for a %s", o, f.kind.name)
	}
	e, err := pack(m, version)
	return keyOf(m), e, version, err
}

// expire makes the next turn read all there is if err says that the server can't
// go on from the version, or may not have noticed that it can't.
func (f *feed) expire(err error) error {
	if tooOld(err) || errors.Is(err, errSilent) {
		f.stale, f.version = true, ""
	}
	return err
}

// tooOld reports whether err means that the server does not know a version any
// more, or not yet.
func tooOld(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}
