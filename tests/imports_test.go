// Package tests holds what looks at the whole module or runs the whole program.
package tests

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/weirproxy/weir"

// allowed is what a package may import besides the standard library. It is the
// architecture: a new edge needs an ADR.
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
		project: []string{"k8s", "l7", "l7/route", "l7/http1", "sockmap"},
		others:  []string{"github.com/prometheus"},
	},
	"k8s": {
		why:     "it turns objects into a routing table and knows nothing of the data path",
		project: []string{"l7/route"},
		others: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "sigs.k8s.io/yaml",
			"github.com/fsnotify/fsnotify", "golang.org/x/sys"},
	},
	"l7": {
		why:     "the data path knows neither Kubernetes nor BPF",
		project: []string{"l7/route", "l7/http1", "l7/upstream"},
		others:  []string{"golang.org/x/sys/unix"},
	},
	"l7/route":    {why: "the model can be tested with a literal: standard library only"},
	"l7/http1":    {why: "a codec without I/O: standard library only"},
	"l7/upstream": {why: "it picks endpoints and pools connections", project: []string{"l7/route"}, others: []string{"golang.org/x/sys/unix"}},
	"sockmap": {
		why: "it is the only user of BPF and knows no other part",
		others: []string{"github.com/cilium/ebpf", "github.com/vishvananda/netlink",
			"github.com/vishvananda/netns", "golang.org/x/sys/unix"},
	},
}

// listed is what "go list -json" says of a package.
type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

// check returns a reason for each import that the table does not allow.
func check(p listed) []string {
	name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
	if name == "tests" || strings.HasPrefix(name, "tests/") {
		return nil // what tests the whole program may see all of it
	}
	rule, ok := table[name]
	if !ok {
		return []string{fmt.Sprintf("package %s has no row in the table of packages", name)}
	}
	var bad []string
	for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
		if own, isOwn := strings.CutPrefix(path, module+"/"); isOwn {
			if own != name && !slices.Contains(rule.project, own) {
				bad = append(bad, fmt.Sprintf("%s imports %s, but %s", name, own, rule.why))
			}
			continue
		}
		first, _, _ := strings.Cut(path, "/")
		if !strings.Contains(first, ".") {
			continue // standard library
		}
		if !slices.ContainsFunc(rule.others, func(o string) bool { return path == o || strings.HasPrefix(path, o+"/") }) {
			bad = append(bad, fmt.Sprintf("%s imports %s, but %s", name, path, rule.why))
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

func TestPackagesImportOnlyWhatTheTableAllows(t *testing.T) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %v: %s", err, e.Stderr)
		}
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(out)))
	count := 0
	for {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		count++
		for _, reason := range check(p) {
			t.Error(reason)
		}
	}
	if count < 5 {
		t.Errorf("go list named %d packages, want the whole module", count)
	}
}

func TestTheTableRefusesAnEdgeThatPointsTheWrongWay(t *testing.T) {
	for name, p := range map[string]listed{
		"route to http1":        {ImportPath: module + "/l7/route", Imports: []string{module + "/l7/http1"}},
		"data path to cluster":  {ImportPath: module + "/l7", Imports: []string{"k8s.io/api/core/v1"}},
		"in a test":             {ImportPath: module + "/l7/http1", XTestImports: []string{module + "/l7"}},
		"another's module":      {ImportPath: module + "/agent", Imports: []string{"github.com/prometheusx/y"}},
		"package without a row": {ImportPath: module + "/util"},
	} {
		if got := check(p); len(got) != 1 {
			t.Errorf("%s: reasons = %q, want one", name, got)
		}
	}
	good := listed{ImportPath: module + "/agent", Imports: []string{"fmt", "net/http", module + "/k8s", "github.com/prometheus/client_golang/prometheus"}}
	if got := check(good); len(got) != 0 {
		t.Errorf("allowed imports refused: %q", got)
	}
}
