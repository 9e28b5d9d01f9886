package k8s

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// update is one call of a running Dir.
type sourceUpdate struct {
	at      time.Time
	objects *Objects
	notices []Notice
}

// running starts a Dir on dir and returns its calls. It ends with the test.
func running(t *testing.T, dir string) <-chan sourceUpdate {
	t.Helper()
	d, err := NewDir(dir, quiet())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	updates := make(chan sourceUpdate, 1000)
	ended := make(chan error, 1)
	go func() {
		ended <- d.Run(ctx, func(c Change) { updates <- sourceUpdate{time.Now(), c.Objects, c.Notices} })
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run = %v, want nil", err)
			}
		case <-time.After(5 * time.Second):
			t.Error("Run did not end with its context")
		}
	})
	return updates
}

// await returns the first update that holds, and fails after 5 s.
func await(t *testing.T, updates <-chan sourceUpdate, what string, holds func(sourceUpdate) bool) sourceUpdate {
	t.Helper()
	deadline := time.After(5 * time.Second)
	for {
		select {
		case u := <-updates:
			if holds(u) {
				return u
			}
		case <-deadline:
			t.Fatalf("%s: not told within 5 s", what)
		}
	}
}

func configMap(name, value string) string {
	return fmt.Sprintf("---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: %s}\ndata: {v: %q}\n", name, value)
}

// values returns what the ConfigMaps made by configMap hold.
func (u sourceUpdate) values() string {
	var out []string
	for _, n := range []string{"a", "b", "c"} {
		if m := u.objects.ConfigMaps[types.NamespacedName{Namespace: "default", Name: n}]; m != nil {
			out = append(out, n+"="+m.Data["v"])
		}
	}
	return strings.Join(out, " ")
}

func holds(values string) func(sourceUpdate) bool {
	return func(u sourceUpdate) bool { return u.values() == values }
}

func TestDirFollowsChanges(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "manifests")
	in := func(elements ...string) string { return filepath.Join(append([]string{dir}, elements...)...) }
	if err := os.MkdirAll(in("sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, in("one.yaml"), configMap("a", "1"))
	updates := running(t, dir)
	await(t, updates, "initial set", holds("a=1"))

	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// do changes something and checks that it is told within 200 ms.
	do := func(what, values string, change func()) {
		t.Helper()
		change()
		last := time.Now()
		u := await(t, updates, what, holds(values))
		if late := u.at.Sub(last); late > 200*time.Millisecond {
			t.Errorf("%s: told %v after the last write, want 200 ms at most", what, late)
		}
	}
	do("write in place", "a=2", func() { write(t, in("one.yaml"), configMap("a", "2")) })
	do("same size, same moment", "a=4", func() {
		write(t, in("one.yaml"), configMap("a", "3"))
		write(t, in("one.yaml"), configMap("a", "4"))
	})
	do("new file", "a=4 b=1", func() { write(t, in("two.yml"), configMap("b", "1")) })
	do("atomic rename", "a=5 b=1", func() {
		write(t, in(".one.yaml.tmp"), configMap("a", "5"))
		must(os.Rename(in(".one.yaml.tmp"), in("one.yaml")))
	})
	do("file in a subdirectory", "a=5 b=1 c=1", func() {
		write(t, in("sub", "three.json"), `{"kind": "ConfigMap", "apiVersion": "v1",`+"\n\t"+`"metadata": {"name": "c"}, "data": {"v": "1"}}`)
	})
	do("delete", "a=5 c=1", func() { must(os.Remove(in("two.yml"))) })
	do("new subdirectories", "a=5 b=2 c=1", func() {
		must(os.MkdirAll(in("x", "y", "z"), 0o755))
		write(t, in("x", "y", "z", "b.yaml"), configMap("b", "2"))
	})
	do("subdirectory moved away", "a=5 c=1", func() { must(os.Rename(in("x"), filepath.Join(parent, "x"))) })
	do("directory replaced", "b=2", func() {
		must(os.Rename(dir, filepath.Join(parent, "before")))
		must(os.Rename(filepath.Join(parent, "x"), dir))
	})
	do("write in the new one", "a=6 b=2", func() { write(t, in("one.yaml"), configMap("a", "6")) })
}

func TestDirectoryDeletedKeepsObjects(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a.yaml"), configMap("a", "1"))
	updates := running(t, dir)
	await(t, updates, "initial set", holds("a=1"))
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	u := await(t, updates, "directory gone", func(u sourceUpdate) bool { return reasons(u.notices)["Unreadable"] == 1 })
	if u.values() != "a=1" {
		t.Errorf("objects %q without the directory, want a=1 kept", u.values())
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "b.yaml"), configMap("b", "1"))
	await(t, updates, "directory created again", holds("b=1"))
}

// TestConfigMapMount swaps files as kubelet does: the visible names link through
// ..data, which is replaced in one step.
func TestConfigMapMount(t *testing.T) {
	dir := t.TempDir()
	version := func(n int) {
		real := fmt.Sprintf("..2026_%d", n)
		if err := os.Mkdir(filepath.Join(dir, real), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, real, "m.yaml"), configMap("a", fmt.Sprint(n)))
		if err := os.Symlink(real, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	version(1)
	if err := os.Symlink("..data/m.yaml", filepath.Join(dir, "m.yaml")); err != nil {
		t.Fatal(err)
	}
	updates := running(t, dir)
	u := await(t, updates, "initial set", holds("a=1"))
	if len(u.notices) != 0 {
		t.Errorf("notices %v, want none: ..data is not read twice", u.notices)
	}
	for n := 2; n < 6; n++ {
		version(n)
		last := time.Now()
		u := await(t, updates, "swap", holds(fmt.Sprintf("a=%d", n)))
		if late := u.at.Sub(last); late > 200*time.Millisecond {
			t.Errorf("swap %d: told after %v, want 200 ms at most", n, late)
		}
	}
}

func TestLinkedFileIsFollowed(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	write(t, filepath.Join(elsewhere, "real"), configMap("a", "1"))
	if err := os.Symlink(filepath.Join(elsewhere, "real"), filepath.Join(dir, "m.yaml")); err != nil {
		t.Fatal(err)
	}
	updates := running(t, dir)
	await(t, updates, "initial set", holds("a=1"))
	write(t, filepath.Join(elsewhere, "real"), configMap("a", "2"))
	await(t, updates, "target written", holds("a=2"))
}

func TestBrokenFileKeepsLastGoodVersion(t *testing.T) {
	dir := t.TempDir()
	m := filepath.Join(dir, "m.yaml")
	write(t, m, configMap("a", "1")+configMap("b", "1"))
	updates := running(t, dir)
	await(t, updates, "initial set", holds("a=1 b=1"))
	broken := func(u sourceUpdate) bool { return len(u.notices) == 1 && u.notices[0].Severity == Error }

	steps := []struct{ name, text, values, says string }{
		{"identified document", configMap("a", "2") + strings.Replace(configMap("b", "2"), "\ndata", "\ndta", 1), "a=2 b=1", `unknown field "dta"`},
		{"syntax error", configMap("a", "3") + "---\n{kind: ConfigMap", "a=3 b=1", "document 2: yaml"},
		{"identified by list", "kind: List\napiVersion: v1\nitems: [{kind: ConfigMap, apiVersion: v1, metadata: {name: a}, data: 1}]", "a=3", "data"},
		{"too large", configMap("a", "4") + strings.Repeat("#", fileBytesMax), "a=3", "larger than 16 MiB"},
	}
	for _, step := range steps {
		write(t, m+".tmp", step.text)
		if err := os.Rename(m+".tmp", m); err != nil { // writing 16 MiB takes a while
			t.Fatal(err)
		}
		u := await(t, updates, step.name, func(u sourceUpdate) bool { return broken(u) && strings.Contains(u.notices[0].Message, step.says) })
		if u.values() != step.values || u.notices[0].File != m {
			t.Errorf("%s: objects %q, notice %+v, want %q and the file's name", step.name, u.values(), u.notices[0], step.values)
		}
	}
	write(t, m, configMap("a", "5"))
	u := await(t, updates, "fixed", holds("a=5"))
	if len(u.notices) != 0 {
		t.Errorf("notices %v after the fix, want none", u.notices)
	}
}

func TestWhatIsNotAManifestIsIgnored(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".m.yaml.swp", ".hidden.yaml", "m.yaml~", "#m.yaml#", "4913", "README.md", "..data.yaml"} {
		write(t, filepath.Join(dir, name), "{")
	}
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, ".git", "m.yaml"), "{")
	write(t, filepath.Join(dir, "m.yaml"), configMap("a", "1"))
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "sub", "b.yaml"), configMap("b", "1"))
	for link, target := range map[string]string{"loop": "..", "sub/self": ".", "twice": "sub"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	d, err := NewDir(filepath.Join(dir), quiet())
	if err != nil {
		t.Fatal(err)
	}
	o, notices, err := d.Load()
	if err != nil || len(notices) != 0 || (sourceUpdate{objects: o}).values() != "a=1 b=1" {
		t.Errorf("Load = %q, %v, %v, want a=1 b=1 and no notice", sourceUpdate{objects: o}.values(), notices, err)
	}
}

func TestUnreadableFilesYieldNotices(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "good.yaml"), configMap("a", "1"))
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", filepath.Join(dir, "endless.yaml")); err != nil {
		t.Fatal(err)
	}
	d, err := NewDir(dir, quiet())
	if err != nil {
		t.Fatal(err)
	}
	o, notices, err := d.Load()
	if err != nil || len(notices) != 2 || notices[0].Severity != Error || (sourceUpdate{objects: o}).values() != "a=1" {
		t.Errorf("Load = %q, %v, %v, want a=1 and two errors", sourceUpdate{objects: o}.values(), notices, err)
	}
	if _, err := NewDir(filepath.Join(dir, "good.yaml"), quiet()); err == nil {
		t.Error("NewDir of a file = nil, want an error")
	}
	if _, err := NewDir(filepath.Join(dir, "nosuch"), quiet()); err == nil {
		t.Error("NewDir of nothing = nil, want an error")
	}
}

func TestFirstFileWins(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "1.yaml"), configMap("a", "first"))
	write(t, filepath.Join(dir, "2.yaml"), configMap("a", "second"))
	updates := running(t, dir)
	u := await(t, updates, "initial set", holds("a=first"))
	if len(u.notices) != 1 || u.notices[0].Reason != "DuplicateObject" || u.notices[0].File != filepath.Join(dir, "2.yaml") {
		t.Errorf("notices %+v, want DuplicateObject in 2.yaml", u.notices)
	}
	if err := os.Remove(filepath.Join(dir, "1.yaml")); err != nil {
		t.Fatal(err)
	}
	await(t, updates, "first deleted", holds("a=second"))
}

func TestUnchangedObjectsKeepPointerAndAge(t *testing.T) {
	dir := t.TempDir()
	m := filepath.Join(dir, "m.yaml")
	write(t, m, configMap("b", "1")+configMap("a", "1"))
	tr, err := newTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	load := func() *Objects {
		tr.scan(nowhere{}, true)
		o, _ := tr.objects()
		return o
	}
	a, b, c := name("default", "a"), name("default", "b"), name("default", "c")
	first := load()
	write(t, m, configMap("c", "1")+"# moved down\n"+configMap("a", "2")+configMap("b", "1"))
	second := load()
	if first.ConfigMaps[b] != second.ConfigMaps[b] {
		t.Error("an unchanged object has a new pointer")
	}
	if first.ConfigMaps[a] == second.ConfigMaps[a] {
		t.Error("a changed object has its old pointer")
	}
	if age := second.ConfigMaps[a].CreationTimestamp; !age.Equal(&first.ConfigMaps[a].CreationTimestamp) {
		t.Error("a changed object has a new age")
	}
	if !second.ConfigMaps[b].CreationTimestamp.Before(&second.ConfigMaps[a].CreationTimestamp) || !second.ConfigMaps[a].CreationTimestamp.Before(&second.ConfigMaps[c].CreationTimestamp) {
		t.Errorf("ages of b, a, c are %v, %v, %v, want that order: of first appearance",
			second.ConfigMaps[b].CreationTimestamp, second.ConfigMaps[a].CreationTimestamp, second.ConfigMaps[c].CreationTimestamp)
	}
}

// TestTruncatedFileIsNotEmptyYet: a writer that truncates first and writes later
// must not make its objects disappear in between.
func TestTruncatedFileIsNotEmptyYet(t *testing.T) {
	dir := t.TempDir()
	m := filepath.Join(dir, "m.yaml")
	write(t, m, configMap("a", "1"))
	updates := running(t, dir)
	await(t, updates, "initial set", holds("a=1"))
	f, err := os.OpenFile(m, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(t, filepath.Join(dir, "other.yaml"), configMap("b", "1"))
	await(t, updates, "other file", holds("a=1 b=1"))
	if _, err := f.WriteString(configMap("a", "2")); err != nil {
		t.Fatal(err)
	}
	await(t, updates, "written", holds("a=2 b=1"))
	if err := os.Truncate(m, 0); err != nil {
		t.Fatal(err)
	}
	await(t, updates, "empty for good", holds("b=1"))
}

// TestFreshStampIsNeverTheSame: a second write within the clock's step may leave
// no trace in the file's times.
func TestFreshStampIsNeverTheSame(t *testing.T) {
	for fresh, want := range map[bool]bool{true: false, false: true} {
		s := stamp{inode: 1, size: 2, fresh: fresh}
		if got := s.same(s, false); got != want {
			t.Errorf("stamp with fresh = %v is the same: %v, want %v", fresh, got, want)
		}
	}
}

func TestPollingFollowsChanges(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "m.yaml"), configMap("a", "1"))
	d, err := NewDir(dir, quiet())
	if err != nil {
		t.Fatal(err)
	}
	tr, err := newTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	updates, ended := make(chan sourceUpdate, 10), make(chan struct{})
	go func() {
		defer close(ended)
		d.poll(ctx, tr, func(c Change) { updates <- sourceUpdate{time.Now(), c.Objects, c.Notices} })
	}()
	await(t, updates, "initial set", holds("a=1"))
	write(t, filepath.Join(dir, "m.yaml"), configMap("a", "2"))
	await(t, updates, "change", holds("a=2"))
	cancel()
	<-ended
	if n := len(updates); n != 0 {
		t.Errorf("%d updates without a change, want none", n)
	}
}
