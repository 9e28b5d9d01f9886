package k8s

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/weirproxy/weir/l7/route"
)

var update = flag.Bool("update", false, "rewrite testdata/*.out.yaml")

// answers is what an .out.yaml holds.
type answers struct {
	Requests  []string            `json:"requests,omitempty"`
	Routes    []string            `json:"routes,omitempty"`
	Endpoints map[string][]string `json:"endpoints,omitempty"`
	Notices   []string            `json:"notices,omitempty"`
}

// TestGolden translates each testdata/*.in.yaml and compares what comes out.
// Lines "# GET host/path" in the input are the requests to answer; a line
// "# configmap: ns/name" names the global settings.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("Glob = %v, %v", inputs, err)
	}
	for _, in := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(in), ".in.yaml"), func(t *testing.T) {
			data, err := os.ReadFile(in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(answer(t, string(data)))
			if err != nil {
				t.Fatal(err)
			}
			out := strings.TrimSuffix(in, ".in.yaml") + ".out.yaml"
			if *update {
				if err := os.WriteFile(out, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("%s translates to\n%s\nwant %s\n%s", in, got, out, want)
			}
		})
	}
}

func answer(t *testing.T, manifests string) answers {
	var opt Options
	var requests []string
	for line := range strings.Lines(manifests) {
		line = strings.TrimSpace(line)
		if r, ok := strings.CutPrefix(line, "# GET "); ok {
			requests = append(requests, strings.Fields(r)...)
		}
		if name, ok := strings.CutPrefix(line, "# configmap: "); ok {
			opt.ConfigMap = name
		}
	}
	o, notices := parse(t, manifests)
	r := NewTranslator(opt).Apply(o)
	a := answers{Endpoints: map[string][]string{}}
	for _, request := range requests {
		host, path, _ := strings.Cut(request, "/")
		a.Requests = append(a.Requests, request+" -> "+serves(r.Table, host, "/"+path))
	}
	for _, h := range r.Table.Hosts() {
		for _, x := range append(slices.Clone(h.Routes), h.Default) {
			if x != nil {
				a.Routes = append(a.Routes, fmt.Sprintf("%q %s %q -> %s by %s%s", x.Host, x.Kind, x.Path, x.Cluster.Name, x.Source, differs(*x.Policy)))
			}
		}
	}
	for _, c := range r.ClusterList {
		a.Endpoints[c.Name] = addresses(c)
	}
	for _, n := range sortNotices(append(notices, r.Notices...)) {
		a.Notices = append(a.Notices, fmt.Sprintf("%s line %d %s %s/%s %s %s: %s [%s]",
			n.Severity, n.Line, n.Kind, n.Namespace, n.Name, n.Field, n.Reason, n.Message, n.Remedy))
	}
	return a
}

// parse reads manifests as one file of a directory.
func parse(t testing.TB, manifests string) (*Objects, []Notice) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.yaml"), []byte(manifests), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := NewDir(dir, quiet())
	if err != nil {
		t.Fatal(err)
	}
	o, notices, err := d.Load()
	if err != nil {
		t.Fatal(err)
	}
	return o, notices
}

// serves returns the name of the cluster that answers, or the status.
func serves(table *route.Table, host, path string) string {
	r := table.Match(host, path)
	switch {
	case r == nil:
		return "404"
	case len(r.Cluster.Endpoints().Active) == 0:
		return "503 " + r.Cluster.Name
	}
	return r.Cluster.Name
}

// addresses lists the endpoints, with "-" before those that drain.
func addresses(c *route.Cluster) []string {
	out := []string{}
	for _, e := range c.Endpoints().Active {
		out = append(out, e.Addr.String())
	}
	for _, e := range c.Endpoints().Draining {
		out = append(out, "-"+e.Addr.String())
	}
	return out
}

// differs says how p differs from the default policy.
func differs(p route.Policy) string {
	got, want := fmt.Sprintf("%+v", p), fmt.Sprintf("%+v", route.DefaultPolicy())
	var out []string
	g, w := strings.Fields(strings.Trim(got, "{}")), strings.Fields(strings.Trim(want, "{}"))
	for n := range g {
		if n >= len(w) || g[n] != w[n] {
			out = append(out, g[n])
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " with " + strings.Join(out, " ")
}

// TestEveryComplaintHasARemedy: whoever reads an Event or a line of the log learns
// what to do.
func TestEveryComplaintHasARemedy(t *testing.T) {
	files, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), "files", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o, _ := parse(t, string(text))
		for _, n := range NewTranslator(Options{ConfigMap: "none/such"}).Apply(o).Notices {
			if n.Severity != Info && n.Remedy == "" {
				t.Errorf("%s: %s of %s %s/%s says not what to do: %s", file, n.Reason, n.Kind, n.Namespace, n.Name, n.Message)
			}
		}
	}
}
