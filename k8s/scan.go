package k8s

import (
	"fmt"
	"io/fs"
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

// depthMax bounds how deep directories and links to directories are followed.
const depthMax = 16

// tree is what is known of a directory tree. One goroutine may use it.
type tree struct {
	root    string
	decoder *decoder
	files   map[string]*file
	ages    map[ref]time.Time // when each object without creationTimestamp was first seen
	known   map[ref]object    // the objects of the last set
	last    time.Time         // the youngest age
	dated   bool              // the first set was put together
	waiting bool              // the last scan did not believe an empty file yet
}

func newTree(root string) (*tree, error) {
	d, err := newDecoder()
	if err != nil {
		return nil, err
	}
	return &tree{root: root, decoder: d}, nil
}

// visit is one walk through a tree.
type visit struct {
	entered  func(dir string)   // called before a directory is listed
	found    map[string]stamp   // manifest files
	unlisted []string           // directories that could not be listed: nothing is known of their files
	notices  []Notice           // why
	seen     map[[2]uint64]bool // directories, by device and inode
}

// scan reads what changed since the last scan. entered is called with every
// directory before it is listed, and with those that links lead to.
func (t *tree) scan(entered func(dir string)) []Notice {
	v := &visit{entered: entered, found: make(map[string]stamp), seen: make(map[[2]uint64]bool)}
	if info, err := os.Stat(t.root); err == nil {
		s := stampOf(info)
		v.seen[[2]uint64{s.device, s.inode}] = true
	}
	v.directory(t.root, 0)
	t.waiting = false
	files := make(map[string]*file, len(v.found))
	for path, s := range v.found {
		old := t.files[path]
		switch {
		case old != nil && s.same(old.stamp):
			files[path] = old
		case old != nil && s.size == 0 && s.fresh && len(old.objects) != 0:
			files[path] = old // truncated by a writer that is about to write
			t.waiting = true
		default:
			files[path] = t.decoder.readFile(path, s, old)
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

func (v *visit) directory(dir string, depth int) {
	v.entered(dir)
	entries, err := os.ReadDir(dir)
	if err == nil && depth > depthMax {
		err = fmt.Errorf("more than %d directories deep", depthMax)
	}
	if err != nil {
		if depth > 0 && os.IsNotExist(err) {
			return // deleted since its parent was listed
		}
		v.unlisted = append(v.unlisted, dir)
		v.notices = append(v.notices, Notice{Severity: Error, Reason: "Unreadable", File: dir,
			Message: fmt.Sprintf("%v: what was read of the directory before stays in force", err)})
		return
	}
	for _, entry := range entries {
		// Dot files belong to editors; "..data" is where the visible links lead.
		if name := entry.Name(); !strings.HasPrefix(name, ".") {
			v.entry(filepath.Join(dir, name), entry, depth)
		}
	}
}

func (v *visit) entry(path string, entry fs.DirEntry, depth int) {
	link := entry.Type()&fs.ModeSymlink != 0
	if !link && !entry.IsDir() && !manifest(path) {
		return
	}
	info, err := os.Stat(path)
	if err != nil {
		if link && manifest(path) {
			v.found[path] = stamp{fresh: true} // a dangling link: reading it says so
		}
		return
	}
	s := stampOf(info)
	if !info.IsDir() {
		if manifest(path) {
			v.found[path] = s
			if link {
				if target, err := filepath.EvalSymlinks(path); err == nil {
					v.entered(filepath.Dir(target))
				}
			}
		}
		return
	}
	if id := [2]uint64{s.device, s.inode}; !v.seen[id] {
		v.seen[id] = true
		v.directory(path, depth+1)
	}
}

func manifest(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
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
