package k8s

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// How changes of files are gathered: until nothing happens for quietTime, but
// never longer than gatherTime after the first. The rest of the 200 ms in which
// a change is due is for reading.
const (
	quietTime  = 30 * time.Millisecond
	gatherTime = 120 * time.Millisecond
)

// How often files are looked at without being told to: in case a file system
// does not report changes, or all the time if they can't be watched.
const (
	rescanTime = 10 * time.Second
	pollTime   = 100 * time.Millisecond
)

// Dir reads objects from the *.yaml, *.yml and *.json files of a directory tree.
//
// A file may hold many documents and lists. What can't be read or decoded keeps
// its last good version and yields a notice; names that start with a dot are
// ignored. A file that is being written keeps what it had until it is closed, or
// for a second after the last write. Links are followed, and watched step by
// step. Of an object in two files the first by path counts.
//
// Objects without creationTimestamp that are there at the start are as old as
// their file's content, then in the order of files; those that come later are as
// old as their first appearance. That is not kept from one run to the next:
// a file that was edited meanwhile is younger at the next start. Only a
// creationTimestamp makes sure which of two namespaces has a host.
type Dir struct {
	path   string // absolute
	logger *slog.Logger
}

// NewDir returns a source for path, which must be a directory now.
func NewDir(path string, logger *slog.Logger) (*Dir, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("manifests: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("manifests: %s is not a directory", path)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("manifests: %w", err)
	}
	return &Dir{absolute, logger}, nil
}

// Load reads everything once. The error is not nil only if nothing can be read
// at all; broken files yield notices.
func (d *Dir) Load() (*Objects, []Notice, error) {
	t, err := newTree(d.path)
	if err != nil {
		return nil, nil, err
	}
	unread := t.scan(nowhere{}, true)
	if len(unread) != 0 && unread[0].File == d.path {
		return nil, nil, fmt.Errorf("manifests: %s", unread[0].Message)
	}
	o, notices := t.objects()
	return o, sortNotices(append(notices, unread...)), nil
}

// Run calls changed with the initial set, then with a whole set after each
// change, until ctx ends. changed is called by one goroutine, the caller's; sets
// and notices are the callee's, the objects in them are shared. The error is not
// nil only if Run can't start.
func (d *Dir) Run(ctx context.Context, changed func(Change)) error {
	t, err := newTree(d.path)
	if err != nil {
		return err
	}
	w, err := newWatch()
	if err != nil {
		d.logger.Warn("manifests are polled: changes can't be watched", "err", err)
		d.poll(ctx, t, changed)
		return nil
	}
	defer w.close()
	s := &session{dir: d, tree: t, changed: changed}
	for idle, alive := true, true; alive; {
		w.begin()
		notices := t.scan(w, idle)
		wait := rescanTime
		if !t.due.IsZero() {
			wait = min(wait, max(time.Until(t.due), time.Millisecond))
		}
		if err := w.finish(); err != nil {
			s.degraded(err)
			wait = pollTime
		}
		s.publish(notices)
		idle, alive = gather(ctx, w.changed, wait)
	}
	return nil
}

// poll is Run without a watch.
func (d *Dir) poll(ctx context.Context, t *tree, changed func(Change)) {
	s := &session{dir: d, tree: t, changed: changed}
	for {
		s.publish(t.scan(nowhere{}, true))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pollTime):
		}
	}
}

// gather returns once changes have come and gone quiet, or, with idle, after
// wait. alive is false when ctx has ended.
func gather(ctx context.Context, changed <-chan struct{}, wait time.Duration) (idle, alive bool) {
	select {
	case <-ctx.Done():
		return false, false
	case <-time.After(wait):
		return true, true
	case <-changed:
	}
	latest := time.After(gatherTime)
	for {
		select {
		case <-ctx.Done():
			return false, false
		case <-changed:
		case <-latest:
			return false, true
		case <-time.After(quietTime):
			return false, true
		}
	}
}

// session is what one Run has told so far.
type session struct {
	dir     *Dir
	tree    *tree
	changed func(Change)

	told    *Objects
	notices []Notice
	warned  string // the last trouble with watching
}

// publish tells the callee what the tree holds, if it differs from what was told
// before. unread are the notices of the scan.
func (s *session) publish(unread []Notice) {
	o, notices := s.tree.objects()
	notices = sortNotices(append(notices, unread...))
	if s.told != nil && o.same(s.told) && slices.Equal(notices, s.notices) {
		return
	}
	s.told = o.Clone() // the maps handed over may be edited
	s.notices = slices.Clone(notices)
	s.changed(Change{Objects: o, Notices: notices})
}

func (s *session) degraded(err error) {
	if text := err.Error(); text != s.warned {
		s.warned = text
		s.dir.logger.Warn("manifests are polled: not every directory can be watched", "err", err)
	}
}

func (o *Objects) same(p *Objects) bool {
	return maps.Equal(o.Ingresses, p.Ingresses) && maps.Equal(o.IngressClasses, p.IngressClasses) &&
		maps.Equal(o.Services, p.Services) && maps.Equal(o.EndpointSlices, p.EndpointSlices) &&
		maps.Equal(o.ConfigMaps, p.ConfigMaps) && maps.Equal(o.Secrets, p.Secrets) && maps.Equal(o.origin, p.origin)
}

// Clone returns a copy with maps of its own, and without Edits.
func (o *Objects) Clone() *Objects {
	return &Objects{
		Ingresses: maps.Clone(o.Ingresses), IngressClasses: maps.Clone(o.IngressClasses), Services: maps.Clone(o.Services),
		EndpointSlices: maps.Clone(o.EndpointSlices), ConfigMaps: maps.Clone(o.ConfigMaps), Secrets: maps.Clone(o.Secrets),
		Node: o.Node, origin: maps.Clone(o.origin),
	}
}
