// Package tests holds what looks at the whole module or runs the whole program.
package tests

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/weirproxy/weir"

// allowed is what a package may import besides the standard library, in files
// with any build constraint and in tests. It is the architecture: a new edge needs
// an ADR, and one that nothing uses goes.
type allowed struct {
	why     string   // why nothing else
	project []string // packages of this module
	others  []string // modules or packages of others, with all below them
}

var table = map[string]allowed{
	"cmd/weir": {
		why:     "it turns flags into agent.Config and nothing more",
		project: []string{"agent"},
		others:  []string{"github.com/urfave/cli/v2"},
	},
	"agent": {
		why:     "it wires the parts; no Kubernetes type and no BPF map reaches it",
		project: []string{"agent/netwatch", "k8s", "k8s/report", "k8s/watch", "l7", "l7/route", "l7/http1", "sockmap"},
		others:  []string{"github.com/prometheus"},
	},
	"agent/netwatch": {
		why:    "it follows the node's network: a package of its own, so that only it speaks rtnetlink",
		others: []string{"github.com/vishvananda/netlink", "golang.org/x/sys/unix"},
	},
	"k8s": {
		why:     "it turns objects into a routing table and knows nothing of the data path",
		project: []string{"l7/route"},
		others:  []string{"k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/yaml", "golang.org/x/sys/unix"},
	},
	"k8s/watch": {
		why:     "it brings objects from an API server: a file more in k8s would bring client-go to all who translate",
		project: []string{"k8s"},
		others:  []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go"},
	},
	"k8s/report": {
		why:     "it writes statuses and Events to the API server; what about, package k8s says",
		project: []string{"k8s"},
		others:  []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "golang.org/x/time"},
	},
	"l7": {
		why:     "the data path knows neither Kubernetes nor BPF",
		project: []string{"l7/route", "l7/http1", "l7/upstream"},
		others:  []string{"golang.org/x/sys/unix"},
	},
	"sockmap": {
		why:    "it is the only user of BPF and knows nothing of the rest",
		others: []string{"github.com/cilium/ebpf", "golang.org/x/sys/unix"},
	},
	"l7/route":    {why: "the model can be tested with a literal: standard library only"},
	"l7/http1":    {why: "a codec without I/O: standard library only"},
	"l7/upstream": {why: "it picks endpoints and pools connections", project: []string{"l7/route"}},
}

// readPackages returns what the packages of the module in root import, by their
// directory, slash-separated. It reads every source itself: "go list" leaves out
// files whose build constraint is not met, and "go test" runs a cached test again
// only if a file that the test itself opened has changed.
func readPackages(root string) (map[string][]string, error) {
	packages := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			ignored := d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_")
			if ignored && file != root {
				return fs.SkipDir // as go does
			}
			return nil
		}
		if filepath.Ext(file) != ".go" {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		imports, err := readImports(file)
		name := filepath.ToSlash(dir)
		packages[name] = append(packages[name], imports...)
		return err
	})
	return packages, err
}

func readImports(file string) ([]string, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var imports []string
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		imports = append(imports, imported)
	}
	return imports, nil
}

// outside reports whether a directory holds what tests the whole program, which may
// see all of it.
func outside(name string) bool { return name == "tests" || strings.HasPrefix(name, "tests/") }

// below reports whether an import path is p or in it.
func below(imported, p string) bool {
	return imported == p || strings.HasPrefix(imported, p+"/")
}

// check returns a reason for each import of package name that the table does not
// allow.
func check(name string, imports []string) []string {
	if outside(name) {
		return nil
	}
	rule, ok := table[name]
	if !ok {
		return []string{fmt.Sprintf("package %s has no row in the table of packages", name)}
	}
	var bad []string
	for _, imported := range imports {
		if own, isOwn := strings.CutPrefix(imported, module+"/"); isOwn {
			if own != name && !slices.Contains(rule.project, own) {
				bad = append(bad, fmt.Sprintf("%s imports %s, but %s", name, own, rule.why))
			}
			continue
		}
		first, _, _ := strings.Cut(imported, "/")
		if !strings.Contains(first, ".") {
			continue // standard library
		}
		if !slices.ContainsFunc(rule.others, func(o string) bool { return below(imported, o) }) {
			bad = append(bad, fmt.Sprintf("%s imports %s, but %s", name, imported, rule.why))
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

// unused returns what the table allows and no package imports.
func unused(packages map[string][]string) []string {
	var out []string
	for name, rule := range table {
		imports, ok := packages[name]
		if !ok {
			out = append(out, fmt.Sprintf("the table has a row for %s, which does not exist", name))
		}
		for _, p := range rule.project {
			if !slices.Contains(imports, path.Join(module, p)) {
				out = append(out, fmt.Sprintf("the table allows %s to import %s, which it does not", name, p))
			}
		}
		for _, o := range rule.others {
			if !slices.ContainsFunc(imports, func(imported string) bool { return below(imported, o) }) {
				out = append(out, fmt.Sprintf("the table allows %s to import %s, which it does not", name, o))
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestPackagesImportOnlyWhatTheTableAllows(t *testing.T) {
	packages, err := readPackages("..")
	if err != nil {
		t.Fatal(err)
	}
	for name, imports := range packages {
		for _, reason := range check(name, imports) {
			t.Error(reason)
		}
	}
	for _, reason := range unused(packages) {
		t.Error(reason)
	}
}

func TestImportsAreReadFromEveryFile(t *testing.T) {
	root := t.TempDir()
	for file, source := range map[string]string{
		"l7/worker.go":           "package l7\nimport \"fmt\"\n",
		"l7/never.go":            "//go:build never\n\npackage l7\nimport _ \"a.example/tagged\"\n",
		"l7/worker_plan9.go":     "package l7\nimport \"a.example/system\"\n",
		"l7/worker_test.go":      "package l7_test\nimport \"a.example/test\"\n",
		"l7/testdata/x/x.go":     "package x\nimport \"a.example/data\"\n",
		".cache/other/module.go": "package other\n",
	} {
		at := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readPackages(root)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got["l7"])
	want := []string{"a.example/system", "a.example/tagged", "a.example/test", "fmt"}
	if len(got) != 1 || !slices.Equal(got["l7"], want) {
		t.Errorf("packages = %q, want only l7 with %q", got, want)
	}
}

func TestTheTableRefusesAnEdgeThatPointsTheWrongWay(t *testing.T) {
	for _, tt := range []struct{ name, from, to string }{
		{"route to http1", "l7/route", module + "/l7/http1"},
		{"data path to cluster", "l7", "k8s.io/api/core/v1"},
		{"to an importer", "l7/http1", module + "/l7"},
		{"another's module", "agent", "github.com/prometheusx/y"},
		{"package without a row", "util", "fmt"},
		{"a watcher of files", "k8s", "github.com/fsnotify/fsnotify"},
	} {
		if got := check(tt.from, []string{tt.to}); len(got) != 1 {
			t.Errorf("%s: %s imports %s: reasons = %q, want one", tt.name, tt.from, tt.to, got)
		}
	}
	good := []string{"fmt", "net/http", module + "/k8s", "github.com/prometheus/client_golang/prometheus"}
	if got := check("agent", good); len(got) != 0 {
		t.Errorf("allowed imports refused: %q", got)
	}
}
