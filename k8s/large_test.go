package k8s

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// linear fails if read(4n) takes far longer than four times read(n), where read
// returns how long it took: a quadratic algorithm takes sixteen times as long. The
// better of two runs counts.
func linear(t *testing.T, n int, read func(n int) time.Duration) {
	t.Helper()
	small := min(read(n), read(n))
	large := min(read(4*n), read(4*n))
	if large > 10*small {
		t.Errorf("%d took %v, %d took %v: more than ten times as long", n, small, 4*n, large)
	}
}

func TestManyFaultsAreReadQuickly(t *testing.T) {
	list := func(count int, field string) string {
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
	linear(t, 1000, func(count int) time.Duration {
		write(t, path, list(count, "data"))
		good := tr.decoder.readFile(path, stamp{}, nil)
		write(t, path, list(count, "dta"))
		start := time.Now()
		f := tr.decoder.readFile(path, stamp{}, good)
		took := time.Since(start)
		if len(f.objects) != count || len(f.notices) != faultsMax+1 {
			t.Fatalf("%d objects and %d notices, want %d kept and %d", len(f.objects), len(f.notices), count, faultsMax+1)
		}
		if last := f.notices[faultsMax]; !strings.Contains(last.Message, fmt.Sprint(count-faultsMax, " more errors")) {
			t.Errorf("the last notice is %q, want how many more there are", last.Message)
		}
		return took
	})
}

func TestManyJSONValuesAreSplitQuickly(t *testing.T) {
	linear(t, 1<<15, func(n int) time.Duration {
		text := strings.Repeat("{}\n", n) + "{"
		start := time.Now()
		docs, err := splitJSON([]byte(text))
		took := time.Since(start)
		if err == nil || len(docs) != n+1 || docs[n-1].line != n {
			t.Fatalf("%d documents, %v, want %d and an error", len(docs), err, n+1)
		}
		return took
	})
}
