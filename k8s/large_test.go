package k8s

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// quick fails if read takes longer than a linear algorithm could on any
// machine: the quadratic ones took tens of seconds.
func quick(t *testing.T, what string, read func()) {
	t.Helper()
	start := time.Now()
	read()
	if took := time.Since(start); took > 6*time.Second {
		t.Errorf("%s took %v", what, took)
	}
}

func TestManyFaultsAreReadQuickly(t *testing.T) {
	const count = 8000
	list := func(field string) string {
		var b strings.Builder
		b.WriteString("kind: List\napiVersion: v1\nitems:\n")
		for n := range count {
			fmt.Fprintf(&b, "- kind: ConfigMap\n  apiVersion: v1\n  metadata:\n    name: m%d\n  %s:\n    v: x\n", n, field)
		}
		return b.String()
	}
	dir := t.TempDir()
	tr, err := newTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := dir + "/m.yaml"
	write(t, path, list("data"))
	good := tr.decoder.readFile(path, stamp{}, nil)
	write(t, path, list("dta"))
	quick(t, "a list with a fault in each item", func() {
		f := tr.decoder.readFile(path, stamp{}, good)
		if len(f.objects) != count || len(f.notices) != faultsMax+1 {
			t.Fatalf("%d objects and %d notices, want %d kept and %d", len(f.objects), len(f.notices), count, faultsMax+1)
		}
		if last := f.notices[faultsMax]; !strings.Contains(last.Message, fmt.Sprint(count-faultsMax, " more errors")) {
			t.Errorf("the last notice is %q, want how many more there are", last.Message)
		}
	})
}

func TestManyJSONValuesAreSplitQuickly(t *testing.T) {
	text := strings.Repeat("{}\n", 1<<18) + "{"
	quick(t, "splitting many values", func() {
		docs, err := splitJSON([]byte(text))
		if err == nil || len(docs) != 1<<18+1 || docs[1<<18-1].line != 1<<18 {
			t.Fatalf("%d documents, %v, want %d and an error", len(docs), err, 1<<18+1)
		}
	})
}
