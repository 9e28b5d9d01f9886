package k8s

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// soon checks that the values are told within 200 ms from now.
func soon(t *testing.T, updates <-chan sourceUpdate, what, values string) {
	t.Helper()
	start := time.Now()
	u := await(t, updates, what, holds(values))
	if late := u.at.Sub(start); late > 200*time.Millisecond {
		t.Errorf("%s: told after %v, want 200 ms at most", what, late)
	}
}

// relink lets name lead to target in one step.
func relink(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// TestEveryLinkOnTheWayIsWatched swaps links that lead to manifests in several
// steps.
func TestEveryLinkOnTheWayIsWatched(t *testing.T) {
	tests := []struct {
		name  string
		files []string // $ is the version
		links [][2]string
		root  string
		swap  string // the link that leads to v$
		to    string
	}{
		{"link to a link", []string{"v$/c.yaml"}, [][2]string{{"m/c.yaml", "../e1/c.yaml"}}, "m", "e1/c.yaml", "../v$/c.yaml"},
		{"directory of a mounted ConfigMap", []string{"cm/..v$/k.yaml"},
			[][2]string{{"cm/k.yaml", "..data/k.yaml"}, {"m/kl.yaml", "../cm/k.yaml"}}, "m", "cm/..data", "..v$"},
		{"above the root", []string{"v$/man/c.yaml"}, nil, "gp/cur/man", "gp/cur", "../v$"},
		{"linked directory", []string{"v$/c.yaml"}, [][2]string{{"m/sub", "../gp/cur"}}, "m", "gp/cur", "../v$/"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			base := t.TempDir()
			in := func(path string, version int) string {
				path = filepath.Join(base, replaceAll(path, version))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				return path
			}
			for version := 1; version < 4; version++ {
				for _, f := range test.files {
					write(t, in(f, version), configMap("a", fmt.Sprint(version)))
				}
			}
			relink(t, replaceAll(test.to, 1), in(test.swap, 0))
			for _, l := range test.links {
				relink(t, l[1], in(l[0], 0))
			}
			updates := running(t, filepath.Join(base, test.root))
			await(t, updates, "initial set", holds("a=1"))
			for version := 2; version < 4; version++ {
				relink(t, replaceAll(test.to, version), in(test.swap, 0))
				soon(t, updates, "swap", fmt.Sprintf("a=%d", version))
			}
			write(t, in(test.files[0], 3), configMap("a", "written"))
			soon(t, updates, "write of the target", "a=written")
		})
	}
}

func replaceAll(path string, version int) string {
	return strings.ReplaceAll(path, "$", fmt.Sprint(version))
}

// TestHalfWrittenFileKeepsItsObjects: a slow writer must not make objects
// disappear that it has not come to yet.
func TestHalfWrittenFileKeepsItsObjects(t *testing.T) {
	dir := t.TempDir()
	m := filepath.Join(dir, "m.yaml")
	write(t, m, configMap("a", "1")+configMap("b", "1"))
	updates := running(t, dir)
	await(t, updates, "initial set", holds("a=1 b=1"))
	f, err := os.Create(m)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(configMap("a", "2")); err != nil {
		t.Fatal(err)
	}
	for n := range 3 { // scans happen meanwhile
		write(t, filepath.Join(dir, "other.yaml"), configMap("c", fmt.Sprint(n)))
		await(t, updates, "other file", holds(fmt.Sprintf("a=1 b=1 c=%d", n)))
	}
	if _, err := f.WriteString(configMap("b", "2")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	u := <-updates
	if late := u.at.Sub(start); late > 200*time.Millisecond || u.values() != "a=2 b=2 c=2" {
		t.Errorf("after %v %q, want both objects in one update within 200 ms of the end", late, u.values())
	}

	// A writer that never closes is waited for so long only.
	f, err = os.Create(m)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(configMap("a", "3")); err != nil {
		t.Fatal(err)
	}
	await(t, updates, "never closed", holds("a=3 c=2"))
}

func TestEmptiedAndClosedFileIsEmptySoon(t *testing.T) {
	dir := t.TempDir()
	m := filepath.Join(dir, "m.yaml")
	write(t, m, configMap("a", "1"))
	updates := running(t, dir)
	await(t, updates, "initial set", holds("a=1"))
	write(t, m, "")
	soon(t, updates, "emptied and closed", "")
}

// untouched is a lookout that has seen no write.
type untouched struct{ nowhere }

func (untouched) written(string) writing { return writing{} }

// TestFreshFilesAreReadAgainWhenIdle: after a bulk write a change of one file
// must not wait for all the others.
func TestFreshFilesAreReadAgainWhenIdle(t *testing.T) {
	dir := t.TempDir()
	m := filepath.Join(dir, "m.yaml")
	write(t, m, configMap("a", "1"))
	tr, err := newTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	tr.scan(untouched{}, true)
	first := tr.files[m]
	tr.scan(untouched{}, false)
	if tr.files[m] != first {
		t.Error("a fresh file that nobody touched was read again in a scan for another")
	}
	tr.scan(nowhere{}, false)
	second := tr.files[m]
	if second == first {
		t.Error("a fresh file that may have been touched was not read again")
	}
	if &second.objects[0] != &first.objects[0] {
		t.Error("the same content was decoded again")
	}
	tr.scan(untouched{}, true)
	if tr.files[m] == second {
		t.Error("a fresh file was not read again when there was time")
	}
}
