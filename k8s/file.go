package k8s

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// fileBytesMax bounds one file: more is surely not a set of manifests.
const fileBytesMax = 16 << 20

// faultsMax bounds the notices about one file: nobody reads more.
const faultsMax = 100

// file is what one file yields, the last good version of what is broken in it
// now included. It is immutable.
type file struct {
	path    string // as found below the directory
	stamp   stamp
	digest  [sha256.Size]byte // of the content; zero if it could not be read
	objects []object
	notices []Notice

	faults, mild int // found while reading; only faultsMax of each are notices
}

// stamp changes when a file does.
type stamp struct {
	device, inode   uint64
	size            int64
	modified, state unix.Timespec // content; also name, mode and owner
	fresh           bool          // written so lately that another write may look alike
}

// freshTime is longer than the steps of any file system's clock.
const freshTime = time.Second

func stampOf(info os.FileInfo) stamp {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{fresh: true}
	}
	return stamp{
		device: uint64(s.Dev), inode: s.Ino, size: s.Size,
		modified: unix.Timespec(s.Mtim), state: unix.Timespec(s.Ctim),
		fresh: time.Since(info.ModTime()) < freshTime,
	}
}

// written returns when the content was.
func (s stamp) written() time.Time { return time.Unix(s.modified.Unix()) }

// same reports whether a file with stamp s needs no reading after one with old.
// untouched means that it is known not to have been written since.
func (s stamp) same(old stamp, untouched bool) bool {
	fresh := s.fresh || old.fresh
	s.fresh, old.fresh = false, false
	return s == old && s.inode != 0 && (untouched || !fresh)
}

// readFile reads path. Of what can't be read or decoded it keeps the version of
// old, which is nil if the file is new.
func (d *decoder) readFile(path string, s stamp, old *file) *file {
	f := &file{path: path, stamp: s}
	data, err := contents(path)
	if err != nil {
		f.fault(0, fault{err: err})
		f.keep(old, nil, true)
		return f
	}
	f.digest = sha256.Sum256(data)
	if old != nil && old.digest == f.digest {
		same := *old
		same.stamp = s
		return &same
	}
	docs, broken := d.split(path, data)
	keep := make(map[ref]bool)
	lost := false // something is broken of which only the old file tells what it was
	for _, doc := range docs {
		objects, faults := []object(nil), []fault(nil)
		if broken != nil && doc.text == nil {
			faults = []fault{{line: doc.line, err: broken}}
		} else {
			objects, faults = d.decode(doc)
		}
		f.objects = append(f.objects, objects...)
		for _, bad := range faults {
			f.fault(doc.number, bad)
			switch {
			case bad.mild:
			case bad.ref.kind == "" || bad.ref.Name == "":
				lost = true
			default:
				keep[bad.ref] = true
			}
		}
	}
	f.keep(old, keep, lost)
	f.more()
	return f
}

func (d *decoder) split(path string, data []byte) ([]document, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if strings.EqualFold(filepath.Ext(path), ".json") {
		return splitJSON(data)
	}
	return splitYAML(data), nil
}

// keep adds the objects of old that f does not list: those in which, or all.
func (f *file) keep(old *file, which map[ref]bool, all bool) {
	if old == nil || len(which) == 0 && !all {
		return
	}
	listed := make(map[ref]bool, len(f.objects))
	for _, o := range f.objects {
		listed[o.ref] = true
	}
	for _, o := range old.objects {
		if !listed[o.ref] && (all || which[o.ref]) {
			f.objects = append(f.objects, o)
		}
	}
}

func (f *file) fault(number int, bad fault) {
	count := &f.faults
	if bad.mild {
		count = &f.mild
	}
	if *count++; *count > faultsMax {
		return
	}
	n := Notice{
		Severity: Error, Kind: bad.ref.kind, Namespace: bad.ref.Namespace, Name: bad.ref.Name,
		Reason: "InvalidManifest", File: f.path, Line: bad.line,
		Message: fmt.Sprintf("document %d: %v: the last good version stays in force, if there was one", number, bad.err),
		Remedy:  "correct the file",
	}
	if number == 0 {
		n.Message = fmt.Sprintf("%v: the last good version stays in force, if there was one", bad.err)
	}
	if bad.mild {
		n.Severity, n.Reason, n.Remedy = Info, "UnknownKind", ""
		n.Message = fmt.Sprintf("document %d: %v", number, bad.err)
	}
	f.notices = append(f.notices, n)
}

// more says how many faults were not told.
func (f *file) more() {
	if f.faults > faultsMax {
		f.notices = append(f.notices, Notice{Severity: Error, Reason: "InvalidManifest", File: f.path,
			Message: fmt.Sprintf("%d more errors in the file are not listed", f.faults-faultsMax), Remedy: "correct those that are listed"})
	}
	if f.mild > faultsMax {
		f.notices = append(f.notices, Notice{Severity: Info, Reason: "UnknownKind", File: f.path,
			Message: fmt.Sprintf("%d more objects of kinds that don't concern Weir are not listed", f.mild-faultsMax)})
	}
}

// contents returns what the regular file path holds. It does not block on what
// turns out to be something else.
func contents(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(data) > fileBytesMax {
		return nil, fmt.Errorf("larger than %d MiB", fileBytesMax>>20)
	}
	return data, nil
}
