package k8s

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// watch tells that something changed in a set of directories, not what: whoever
// gets the signal looks for himself. It uses one inotify descriptor.
type watch struct {
	inotify *os.File      // owned; close ends run
	fd      int           // of inotify, for adding and removing only
	changed chan struct{} // capacity 1
	ended   chan struct{} // closed when run has returned
	parent  int           // watch descriptor of the directory above the root
	shared  atomic.Bool   // that directory has manifests too: links lead there

	// owned by the goroutine that calls begin, add and finish
	current map[int]bool // watch descriptors in use
	next    map[int]bool // those of the walk that runs
	failed  error        // the first of that walk
}

const watchMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_CLOSE_WRITE |
	unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// parentMask is for the directory above the root, where other people's files
// are written too.
const parentMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO

// newWatch starts a goroutine, which close ends. Of the directory above root
// only what concerns root counts.
func newWatch(root string) (*watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("create inotify descriptor: %w", err)
	}
	w := &watch{
		inotify: os.NewFile(uintptr(fd), "inotify"), fd: fd,
		changed: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	w.parent, err = unix.InotifyAddWatch(fd, filepath.Dir(root), parentMask)
	if err != nil {
		w.inotify.Close()
		return nil, fmt.Errorf("watch %s: %w", filepath.Dir(root), err)
	}
	go w.run(filepath.Base(root))
	return w, nil
}

func (w *watch) close() {
	w.inotify.Close()
	<-w.ended
}

// run reads events until the descriptor is closed.
func (w *watch) run(root string) {
	defer close(w.ended)
	buf := make([]byte, 64<<10)
	for {
		n, err := w.inotify.Read(buf)
		if err != nil {
			return
		}
		if w.shared.Load() || concerns(buf[:n], w.parent, root) {
			select {
			case w.changed <- struct{}{}:
			default:
			}
		}
	}
}

// concerns reports whether any event counts: all but those in the directory
// above root on other names than root's. The layout is that of inotify(7).
func concerns(events []byte, parent int, root string) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		wd := int(int32(binary.NativeEndian.Uint32(events)))
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
		if end > len(events) {
			return true
		}
		name := strings.TrimRight(string(events[unix.SizeofInotifyEvent:end]), "\x00")
		if wd != parent || name == root {
			return true
		}
		events = events[end:]
	}
	return false
}

// begin starts a walk: what add is not called for until finish is not watched
// any more.
func (w *watch) begin() { w.next, w.failed = make(map[int]bool), nil }

// add watches the directory that path leads to now.
func (w *watch) add(path string) {
	wd, err := unix.InotifyAddWatch(w.fd, path, watchMask|unix.IN_ONLYDIR)
	switch {
	case err == nil && wd == w.parent:
		w.shared.Store(true)
	case err == nil:
		w.next[wd] = true
	case w.failed == nil && err != unix.ENOENT:
		w.failed = fmt.Errorf("watch %s: %w", path, err)
	}
}

// finish ends a walk and returns why a directory is not watched, if one isn't.
func (w *watch) finish() error {
	for wd := range w.current {
		if !w.next[wd] {
			// A directory that was deleted has taken its watch with it.
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd))
		}
	}
	w.current = w.next
	return w.failed
}
