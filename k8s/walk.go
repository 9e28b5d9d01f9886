package k8s

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// depthMax bounds how deep directories and links to directories are followed.
const depthMax = 16

// linksMax bounds the links on the way to one file, as path_resolution(7) does.
const linksMax = 40

// lookout watches what a walk comes by. Directories and places are real paths:
// absolute and without links.
type lookout interface {
	// whole watches all in dir.
	whole(dir string)
	// entry watches what name in dir is, and if content also what it holds.
	entry(dir, name string, content bool)
	// written tells how the file at place was written.
	written(place string) writing
}

// writing is what is known of the writers of one file.
type writing struct {
	touched          bool      // maybe, since the walk before
	modified, closed time.Time // last time; zero if not of late
}

// open reports whether somebody wrote of late and may not be done.
func (w writing) open() bool {
	return w.modified.After(w.closed) && time.Since(w.modified) < freshTime
}

// nowhere is a lookout that sees nothing.
type nowhere struct{}

func (nowhere) whole(string)               {}
func (nowhere) entry(string, string, bool) {}
func (nowhere) written(string) writing     { return writing{touched: true} }

// visit is one walk through a tree.
type visit struct {
	lookout  lookout
	found    map[string]found   // manifest files
	unlisted []string           // directories that could not be listed: nothing is known of their files
	notices  []Notice           // why
	seen     map[[2]uint64]bool // directories, by device and inode
	links    map[string]link    // what real paths are
}

// found is a manifest file.
type found struct {
	stamp
	place string // where it really is; "" if a link leads nowhere
}

// link is what a name is: a link to target, something else, or missing.
type link struct {
	target  string // "" if it is no link
	missing bool
}

// directory lists dir, whose real path is real.
func (v *visit) directory(dir, real string, depth int) {
	if real != "" {
		v.lookout.whole(real)
	}
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
			v.entry(filepath.Join(dir, name), filepath.Join(real, name), entry, depth)
		}
	}
}

func (v *visit) entry(path, place string, entry fs.DirEntry, depth int) {
	isLink := entry.Type()&fs.ModeSymlink != 0
	if !isLink && !entry.IsDir() && !manifest(path) {
		return
	}
	if isLink {
		place, _ = v.follow(place)
	}
	info, err := os.Stat(path)
	if err != nil {
		if isLink && manifest(path) {
			v.found[path] = found{stamp: stamp{fresh: true}} // a dangling link: reading it says so
		}
		return
	}
	s := stampOf(info)
	if !info.IsDir() {
		if manifest(path) {
			v.found[path] = found{s, place}
		}
		return
	}
	if id := [2]uint64{s.device, s.inode}; !v.seen[id] {
		v.seen[id] = true
		v.directory(path, place, depth+1)
	}
}

// follow returns the real path of path and watches each link on the way, where
// it ends, and what is missing. The result is "" and false if it leads nowhere.
func (v *visit) follow(path string) (place string, ok bool) {
	at, rest, links := "/", strings.Split(path, "/"), 0
	for len(rest) != 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		l := v.link(next)
		if l.target != "" || l.missing || len(rest) == 0 {
			v.lookout.entry(at, name, len(rest) == 0 && manifest(path))
			l = v.look(next) // may have changed before it was watched
		}
		switch {
		case l.missing:
			return "", false
		case l.target == "":
			at = next
		default:
			if links++; links > linksMax {
				return "", false
			}
			if filepath.IsAbs(l.target) {
				at = "/"
			}
			rest = append(strings.Split(strings.TrimRight(l.target, "/"), "/"), rest...)
		}
	}
	return at, true
}

// link is look for what may have been looked at before.
func (v *visit) link(path string) link {
	if l, ok := v.links[path]; ok {
		return l
	}
	return v.look(path)
}

func (v *visit) look(path string) link {
	l := link{}
	if info, err := os.Lstat(path); err != nil {
		l.missing = true
	} else if info.Mode()&fs.ModeSymlink != 0 {
		if l.target, err = os.Readlink(path); err != nil {
			l.missing = true
		}
	}
	v.links[path] = l
	return l
}

func manifest(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
