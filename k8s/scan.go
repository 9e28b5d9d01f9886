package k8s

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tree is what is known of a directory tree. One goroutine may use it.
type tree struct {
	root    string
	decoder *decoder
	files   map[string]*file
	ages    map[ref]time.Time // when each object without creationTimestamp was first seen
	known   map[ref]object    // the objects of the last set
	last    time.Time         // the youngest age
	dated   bool              // the first set was put together
	due     time.Time         // when a file that seemed half written is to be read; zero = none
}

func newTree(root string) (*tree, error) {
	d, err := newDecoder()
	if err != nil {
		return nil, err
	}
	return &tree{root: root, decoder: d}, nil
}

// scan reads what changed since the last scan. l is told what to watch before it
// is looked at. idle means that nothing happened lately: there is time to read
// again what was written so lately that its times may not tell of a change.
func (t *tree) scan(l lookout, idle bool) []Notice {
	v := &visit{lookout: l, found: make(map[string]found), seen: make(map[[2]uint64]bool), links: make(map[string]link)}
	if info, err := os.Stat(t.root); err == nil {
		s := stampOf(info)
		v.seen[[2]uint64{s.device, s.inode}] = true
	}
	real, _ := v.follow(t.root)
	v.directory(t.root, real, 0)
	t.due = time.Time{}
	files := make(map[string]*file, len(v.found))
	for path, found := range v.found {
		if f := t.read(path, found, l, idle); f != nil {
			files[path] = f
		}
	}
	for path, old := range t.files {
		if files[path] == nil && slices.ContainsFunc(v.unlisted, func(dir string) bool {
			return strings.HasPrefix(path, dir+string(filepath.Separator))
		}) {
			files[path] = old
		}
	}
	t.files = files
	return v.notices
}

// read returns what the file at path yields now, nil for nothing yet. A file
// that is being written keeps what it had.
func (t *tree) read(path string, found found, l lookout, idle bool) *file {
	old, write := t.files[path], l.written(found.place)
	emptied := old != nil && len(old.objects) != 0 && found.size == 0 && found.fresh
	switch {
	case old != nil && found.same(old.stamp, !write.touched && !idle):
		return old
	case write.open():
		return t.hold(old, write.modified)
	case emptied && !write.closed.After(found.written()):
		return t.hold(old, found.written()) // truncated by a writer that is about to write
	}
	f := t.decoder.readFile(path, found.stamp, old)
	if write = l.written(found.place); write.open() {
		return t.hold(old, write.modified) // a writer came in between
	}
	return f
}

// hold returns old to be looked at again freshTime after the last write.
func (t *tree) hold(old *file, last time.Time) *file {
	if due := last.Add(freshTime); t.due.IsZero() || due.Before(t.due) {
		t.due = due
	}
	if old == nil {
		return nil
	}
	held := *old
	held.stamp = stamp{modified: old.stamp.modified, fresh: true} // like no other
	return &held
}

// objects puts the files together to one set. An object that is the same as in
// the last set keeps its pointer.
func (t *tree) objects() (*Objects, []Notice) {
	set := NewObjects()
	var notices []Notice
	known := make(map[ref]object)
	var order []ref
	for _, path := range slices.Sorted(maps.Keys(t.files)) {
		f := t.files[path]
		notices = append(notices, f.notices...)
		for _, o := range f.objects {
			if _, twice := known[o.ref]; twice {
				first := set.origin[o.ref]
				notices = append(notices, Notice{Severity: Warning, Kind: o.ref.kind, Namespace: o.ref.Namespace, Name: o.ref.Name,
					Reason: "DuplicateObject", File: path, Line: o.line,
					Message: fmt.Sprintf("the object stands in %s line %d too, which counts", first.file, first.line), Remedy: "remove one of them"})
				continue
			}
			if old, ok := t.known[o.ref]; ok && old.digest == o.digest {
				o.value = old.value
			}
			known[o.ref] = o
			order = append(order, o.ref)
			set.origin[o.ref] = position{path, o.line, o.undated}
		}
	}
	t.date(order, known, set.origin)
	for _, o := range known {
		set.add(o)
	}
	t.known = known
	return set, notices
}

// date gives the objects without creationTimestamp an age. In the first set that
// is when their file was written, then the order of files, then that in a file.
// What arrives later is younger than all that is there.
func (t *tree) date(order []ref, known map[ref]object, origin map[ref]position) {
	now := time.Now()
	born := func(r ref) time.Time {
		if t.dated {
			return now
		}
		return earlier(now, t.files[origin[r].file].stamp.written())
	}
	if !t.dated {
		slices.SortStableFunc(order, func(a, b ref) int { return born(a).Compare(born(b)) })
	}
	ages := make(map[ref]time.Time)
	for _, r := range order {
		age, seen := t.ages[r]
		if !seen && origin[r].undated {
			if age = born(r); !age.After(t.last) {
				age = t.last.Add(time.Microsecond)
			}
			t.last, seen = age, true
		}
		if seen {
			ages[r] = age
		}
		value := known[r].value
		if stamp := value.GetCreationTimestamp(); stamp.IsZero() {
			value.SetCreationTimestamp(metav1.NewTime(age)) // not in any set yet
		}
	}
	t.ages, t.dated = ages, true
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (o *Objects) add(v object) {
	switch value := v.value.(type) {
	case *networkingv1.Ingress:
		o.Ingresses[v.ref.NamespacedName] = value
	case *networkingv1.IngressClass:
		o.IngressClasses[v.ref.Name] = value
	case *corev1.Service:
		o.Services[v.ref.NamespacedName] = value
	case *discoveryv1.EndpointSlice:
		o.EndpointSlices[v.ref.NamespacedName] = value
	case *corev1.ConfigMap:
		o.ConfigMaps[v.ref.NamespacedName] = value
	case *corev1.Secret:
		o.Secrets[v.ref.NamespacedName] = value
	}
}
