package k8s

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// watch is a lookout that tells that something changed, not what: whoever gets
// the signal looks for himself. It uses one inotify descriptor.
type watch struct {
	inotify *os.File      // owned; close ends run
	fd      int           // of inotify, for adding and removing only
	changed chan struct{} // capacity 1
	ended   chan struct{} // closed when run has returned

	mu      sync.Mutex
	wholes  map[int]bool  // watch descriptors of directories in which all counts
	names   map[spot]bool // what counts in others
	touched map[spot]bool // since the walk that runs, or the last, began
	blind   bool          // since then events were lost
	writes  map[spot]writing

	// owned by the goroutine that walks
	current map[int]bool     // watch descriptors in use before the walk
	dirs    map[string]added // what the walk added, by real path
	counts  map[int]bool     // wholes of the walk
	counted map[spot]bool    // names of the walk
	before  map[spot]bool    // touched when the walk began
	lost    bool             // blind when it began
	failed  error            // the first of the walk
}

// spot is a name in a watched directory.
type spot struct {
	wd   int
	name string
}

// added is a watch of the walk that runs.
type added struct {
	wd   int
	mask uint32
}

// entryMask tells what a name is, contentMask also what it holds.
const (
	entryMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
		unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
	contentMask = entryMask | unix.IN_CLOSE_WRITE | unix.IN_MODIFY | unix.IN_ATTRIB
)

// writesTime is how long a write is remembered: longer than it matters.
const writesTime = 2 * freshTime

// newWatch starts a goroutine, which close ends.
func newWatch() (*watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("create inotify descriptor: %w", err)
	}
	w := &watch{
		inotify: os.NewFile(uintptr(fd), "inotify"), fd: fd,
		changed: make(chan struct{}, 1), ended: make(chan struct{}),
		wholes: make(map[int]bool), names: make(map[spot]bool),
		touched: make(map[spot]bool), writes: make(map[spot]writing),
	}
	go w.run()
	return w, nil
}

func (w *watch) close() {
	w.inotify.Close()
	<-w.ended
}

// run reads events until the descriptor is closed.
func (w *watch) run() {
	defer close(w.ended)
	buf := make([]byte, 64<<10)
	for {
		n, err := w.inotify.Read(buf)
		if err != nil {
			return
		}
		if w.note(buf[:n], time.Now()) {
			select {
			case w.changed <- struct{}{}:
			default:
			}
		}
	}
}

// note remembers what events say and reports whether any of them counts. The
// layout is that of inotify(7).
func (w *watch) note(events []byte, now time.Time) (counts bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(events) >= unix.SizeofInotifyEvent {
		wd := int(int32(binary.NativeEndian.Uint32(events)))
		mask := binary.NativeEndian.Uint32(events[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
		if end > len(events) || mask&unix.IN_Q_OVERFLOW != 0 {
			w.blind = true
			clear(w.writes)
			return true
		}
		at := spot{wd, strings.TrimRight(string(events[unix.SizeofInotifyEvent:end]), "\x00")}
		events = events[end:]
		if !w.wholes[wd] && !w.names[at] && (at.name != "" || mask&unix.IN_IGNORED != 0) {
			continue
		}
		counts = true
		w.touched[at] = true
		write := w.writes[at]
		switch {
		case mask&unix.IN_MODIFY != 0:
			write.modified = now
		case mask&(unix.IN_CLOSE_WRITE|unix.IN_MOVED_TO) != 0:
			write.closed = now
		case mask&(unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_FROM) != 0:
			write = writing{}
		default:
			continue
		}
		w.writes[at] = write
	}
	return counts
}

// begin starts a walk: what it does not come by is not watched any more after
// finish.
func (w *watch) begin() {
	w.dirs, w.counts, w.counted, w.failed = make(map[string]added), make(map[int]bool), make(map[spot]bool), nil
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before, w.lost = w.touched, w.blind
	w.touched, w.blind = make(map[spot]bool), false
	for at, write := range w.writes {
		if time.Since(write.modified) > writesTime && time.Since(write.closed) > writesTime {
			delete(w.writes, at)
		}
	}
}

func (w *watch) whole(dir string) {
	w.mu.Lock() // an event must find what is known of its watch
	defer w.mu.Unlock()
	if wd, ok := w.add(dir, contentMask); ok {
		w.wholes[wd], w.counts[wd] = true, true
	}
}

func (w *watch) entry(dir, name string, content bool) {
	mask := uint32(entryMask)
	if content {
		mask = contentMask
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if wd, ok := w.add(dir, mask); ok {
		at := spot{wd, name}
		w.names[at], w.counted[at] = true, true
	}
}

// add watches the directory dir, once in a walk.
func (w *watch) add(dir string, mask uint32) (wd int, ok bool) {
	if a, ok := w.dirs[dir]; ok && a.mask&mask == mask {
		return a.wd, true
	}
	wd, err := unix.InotifyAddWatch(w.fd, dir, mask|unix.IN_ONLYDIR|unix.IN_MASK_ADD)
	if err != nil {
		if w.failed == nil && err != unix.ENOENT && err != unix.ENOTDIR {
			w.failed = fmt.Errorf("watch %s: %w", dir, err)
		}
		return 0, false
	}
	w.dirs[dir] = added{wd, mask | w.dirs[dir].mask}
	return wd, true
}

// written may guess for the worse: that a file was touched.
func (w *watch) written(place string) writing {
	dir, ok := w.dirs[filepath.Dir(place)]
	if place == "" || !ok {
		return writing{touched: true}
	}
	at := spot{dir.wd, filepath.Base(place)}
	w.mu.Lock()
	defer w.mu.Unlock()
	write := w.writes[at]
	write.touched = w.before[at] || w.touched[at] || w.lost || w.blind
	return write
}

// finish ends a walk and returns why a directory is not watched, if one isn't.
func (w *watch) finish() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := make(map[int]bool, len(w.dirs))
	for _, a := range w.dirs {
		next[a.wd] = true
	}
	for wd := range w.current {
		if !next[wd] {
			// A directory that was deleted has taken its watch with it.
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd))
		}
	}
	w.current, w.wholes, w.names = next, w.counts, w.counted
	return w.failed
}
