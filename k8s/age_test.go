package k8s

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRestartKeepsHostWithOlderFile: the name of a file must not decide who
// owns a host.
func TestRestartKeepsHostWithOlderFile(t *testing.T) {
	dir := t.TempDir()
	own, thief := filepath.Join(dir, "z-own.yaml"), filepath.Join(dir, "a-thief.yaml")
	write(t, own, class+service("t1", "a", "10.0.0.1")+ingressOf("t1", "own", "api.test", "/", "a"))
	write(t, thief, service("t2", "evil", "10.0.0.2")+ingressOf("t2", "thief", "api.test", "/", "evil"))
	hourAgo := time.Now().Add(-time.Hour)
	if err := os.Chtimes(own, hourAgo, hourAgo); err != nil {
		t.Fatal(err)
	}
	d, err := NewDir(dir, quiet())
	if err != nil {
		t.Fatal(err)
	}
	refused := func() string {
		t.Helper()
		o, _, err := d.Load()
		if err != nil {
			t.Fatal(err)
		}
		r := NewTranslator(Options{}).Apply(o)
		want(t, r.Table, "api.test/ -> t1/a:80")
		for _, n := range r.Notices {
			if n.Reason == "HostAlreadyClaimed" && n.Namespace == "t2" {
				return n.Message + n.Remedy
			}
		}
		t.Fatalf("notices %v, want HostAlreadyClaimed for t2", r.Notices)
		return ""
	}
	if got := refused(); !strings.Contains(got, "times of their files") || !strings.Contains(got, "creationTimestamp") {
		t.Errorf("notice %q does not say that file times decide", got)
	}
	// With stamps neither the order nor the times of the files count.
	for path, stamp := range map[string]string{own: "2026-01-01T00:00:00Z", thief: "2026-01-02T00:00:00Z"} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, strings.Replace(string(data), "kind: Ingress\napiVersion: networking.k8s.io/v1\nmetadata: {", "kind: Ingress\napiVersion: networking.k8s.io/v1\nmetadata: {creationTimestamp: "+stamp+", ", 1))
	}
	if got := refused(); strings.Contains(got, "times of their files") {
		t.Errorf("notice %q speaks of file times though both objects have creationTimestamp", got)
	}
}

// TestLaterArrivalIsYoungerThanStamped: an object without creationTimestamp that
// comes after the start is not dated back to the start.
func TestLaterArrivalIsYoungerThanStamped(t *testing.T) {
	dir := t.TempDir()
	tr, err := newTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a.yaml"), configMap("a", "1"))
	tr.scan(nowhere{}, true)
	tr.objects()
	tr.last = time.Now().Add(-time.Hour) // the start was long ago
	before := time.Now()
	write(t, filepath.Join(dir, "b.yaml"), configMap("b", "1"))
	tr.scan(nowhere{}, true)
	o, _ := tr.objects()
	if age := o.ConfigMaps[name("default", "b")].CreationTimestamp; age.Time.Before(before) {
		t.Errorf("a later arrival is dated %v, want not before %v", age, before)
	}
}
