package watch

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// How long a watch is asked to last: long, and of different length on each node.
const (
	watchTimeMin  = 5 * time.Minute
	watchTimeVary = 5 * time.Minute
)

// silenceMax is how long a watch may tell nothing before it counts as dead: the API
// server sends a bookmark about once a minute.
const silenceMax = 4 * time.Minute

var (
	// errEnded is the end of a watch without a reason.
	errEnded = errors.New("the watch ended")
	// errSilent is the end of a watch that told nothing for too long.
	errSilent = errors.New("the watch told nothing for too long")
)

// stream is an open watch.
type stream struct {
	watch.Interface
	silent  *time.Timer
	silence time.Duration
}

// open begins a watch.
func (f *feed) open(ctx context.Context, o metav1.ListOptions) (*stream, error) {
	seconds := int64((watchTimeMin + rand.N(watchTimeVary)) / time.Second)
	o.TimeoutSeconds = &seconds
	w, err := f.clients.watch(ctx, f.kind, f.scope, o)
	if err != nil {
		return nil, err
	}
	return &stream{w, time.NewTimer(f.silence), f.silence}, nil
}

func (s *stream) close() {
	s.silent.Stop()
	s.Stop()
}

// next waits for an event that is not an error.
func (s *stream) next(ctx context.Context) (watch.Event, error) {
	select {
	case <-ctx.Done():
		return watch.Event{}, ctx.Err()
	case <-s.silent.C:
		return watch.Event{}, errSilent
	case e, ok := <-s.ResultChan():
		switch {
		case !ok:
			return e, errEnded
		case e.Type == watch.Error:
			return e, apierrors.FromObject(e.Object)
		}
		s.silent.Reset(s.silence)
		return e, nil
	}
}
