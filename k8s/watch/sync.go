package watch

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// pageSize is how many objects of a list come at once.
const pageSize = 500

// sync puts all there is into the store at once, however many answers that takes,
// and returns the watch that goes on from there, if the server streams, else nil:
// then a watch is to be opened.
func (f *feed) sync(ctx context.Context) (*stream, error) {
	if f.gate != nil {
		select {
		case f.gate <- struct{}{}:
			defer func() { <-f.gate }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s, err := f.stream(ctx)
	if err == nil || ctx.Err() != nil || !listHelps(err) {
		return s, err
	}
	return nil, f.list(ctx)
}

// listHelps reports whether a list may bring what a stream did not. A server that
// can't stream, for its own age or etcd's, says so in several ways.
func listHelps(err error) bool {
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsTooManyRequests(err):
		return false
	case errors.Is(err, errEnded), errors.Is(err, errSilent):
		return true
	}
	var answer apierrors.APIStatus
	return errors.As(err, &answer)
}

// stream reads all there is from a watch, up to the bookmark that ends it.
func (f *feed) stream(ctx context.Context) (*stream, error) {
	yes := true
	s, err := f.open(ctx, metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if err != nil {
		return nil, err
	}
	if err := f.collect(ctx, s); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (f *feed) collect(ctx context.Context, s *stream) error {
	all := make(map[key]*entry)
	for {
		e, err := s.next(ctx)
		if err != nil {
			return err
		}
		if e.Type == watch.Bookmark {
			m, err := meta.Accessor(e.Object)
			if err != nil {
				return fmt.Errorf("a bookmark without metadata: %w", err)
			}
			if m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
				f.version, f.stale = m.GetResourceVersion(), false
				f.store.replace(f, all)
				return nil
			}
			continue
		}
		k, o, _, err := f.read(e.Object)
		if err != nil {
			return err
		}
		if all[k] = o; e.Type == watch.Deleted {
			delete(all, k)
		}
	}
}

// list reads all there is page by page. A list at the version that the store had
// can't go back in time; where there was none, any version that the server has in
// its memory will do.
func (f *feed) list(ctx context.Context) error {
	o := metav1.ListOptions{ResourceVersion: "0", Limit: pageSize}
	if f.stale {
		o.ResourceVersion = "" // the newest there is
	}
	all := make(map[key]*entry)
	for {
		page, err := f.clients.list(ctx, f.kind, f.scope, o)
		if err != nil {
			return err
		}
		m, err := meta.ListAccessor(page)
		if err != nil {
			return fmt.Errorf("the API server sent a %T for a list of %s: %w", page, f.kind.resource, err)
		}
		// The copies keep single objects from holding the whole page.
		err = meta.EachListItemWithAlloc(page, func(item runtime.Object) error {
			k, o, _, err := f.read(item)
			all[k] = o
			return err
		})
		if err != nil {
			return err
		}
		if o.Continue = m.GetContinue(); o.Continue == "" {
			f.version, f.stale = m.GetResourceVersion(), false
			f.store.replace(f, all)
			return nil
		}
		o.ResourceVersion = "" // the token says it
	}
}
