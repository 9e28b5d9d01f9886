package k8s

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// zoo are bad values of an Ingress: annotations, spec and what its namespace is.
// All of them name hosts and paths of the good ones where they can.
func zoo() []string {
	rule := func(host, path, pathType, backend string) string {
		return fmt.Sprintf(`{rules: [{host: %s, http: {paths: [{path: %s, pathType: %s, backend: %s}]}}]}`, host, path, pathType, backend)
	}
	const good = `{service: {name: a, port: {number: 80}}}`
	var out []string
	add := func(annotations, spec string) {
		out = append(out, fmt.Sprintf("\n---\nkind: Ingress\napiVersion: networking.k8s.io/v1\nmetadata: {name: zoo-%d, namespace: zoo, annotations: {%s}}\nspec: %s\n", len(out), annotations, spec))
	}
	for _, host := range []string{`"*"`, `"*."`, `"*.*.test"`, `a..test`, `".test"`, `"-a.test"`, `"10.1.2.3"`, `"::1"`, `"a.test:80"`, `"http://g1.test"`,
		`"G1.TEST"`, `"a b.test"`, `"a/b.test"`, `"a\u0000.test"`, `"ä.test"`, `"` + strings.Repeat("a", 300) + `.test"`, `"` + strings.Repeat("a", 64) + `.test"`, `"g1.test."`, `"_x.test"`, `1`, `[g1.test]`, `g1.test`} {
		add("", rule(host, "/", "Prefix", good))
	}
	for _, path := range []string{`relative`, `"//"`, `"/a//b"`, `"/.."`, `"/%2e%2e/"`, `"/%"`, `"/%0"`, `"/\u0000"`, `"/?"`, `"/#"`, `"` + strings.Repeat("/a", 5000) + `"`, `"/*"`, `"/(.*)"`, `1`} {
		add("", rule("g1.test", path, "Exact", good))
	}
	for _, pathType := range []string{`""`, `Regex`, `prefix`, `null`, `1`} {
		add("", rule("g2.test", "/", pathType, good))
	}
	for _, backend := range []string{`{}`, `null`, `{service: {}}`, `{service: {name: "", port: {number: 80}}}`, `{service: {name: a}}`, `{service: {name: a, port: {number: 0}}}`,
		`{service: {name: a, port: {number: -1}}}`, `{service: {name: a, port: {number: 70000}}}`, `{service: {name: a, port: {name: "x y"}}}`, `{service: {name: "../a", port: {number: 80}}}`,
		`{service: {name: a, port: {number: 80, name: x}}}`, `{resource: {kind: B, name: b}}`, `{resource: {kind: B, name: b}, service: {name: a, port: {number: 80}}}`,
		`{service: {name: nosuch, port: {number: 80}}}`, `{service: {name: a, port: {number: 99}}}`, `{service: {name: a, port: {number: 80}}, extra: 1}`} {
		add("", rule("g3.test", "/", "Prefix", backend))
	}
	for _, a := range []string{"auth-url: x", "rewrite-target: /$1", "use-regex: 'true'", "canary: 'true'", "proxy-body-size: '-1'", "upstream-hash-by: '$'", "load-balance: '\"; deny all;'",
		"server-snippet: '}'", "nosuch: x", "server-alias: g1.test", "proxy-read-timeout: 1"} {
		add("nginx.ingress.kubernetes.io/"+a, rule("g4.test", "'/(x|y)[z]'", "ImplementationSpecific", good))
	}
	add("", "{}")
	add("", "{rules: []}")
	add("", "{rules: [{}]}")
	add("", "{defaultBackend: {}}")
	add("", "{ingressClassName: nosuch, rules: [{host: g5.test}]}")
	return out
}

// TestZoo puts bad objects among good ones: nothing that the good ones serve may
// change, whether the bad ones come first, last or in between.
func TestZoo(t *testing.T) {
	const good = 200
	var text strings.Builder
	text.WriteString(class + service("t1", "a", "10.0.0.1") + service("zoo", "a", "10.0.0.2"))
	for n := range good {
		text.WriteString(ingressOf("t1", fmt.Sprintf("good-%d", n), fmt.Sprintf("g%d.test", n), "/", "a"))
	}
	base, notices := parse(t, text.String())
	before := NewTranslator(Options{}).Apply(base)
	if before.Routes != good || len(notices)+len(before.Notices) != 0 {
		t.Fatalf("%d routes, notices %v %v, want %d and none", before.Routes, notices, before.Notices, good)
	}
	animals := zoo()
	if len(animals) < 60 {
		t.Fatalf("%d bad objects, want 60 or more", len(animals))
	}

	dir := t.TempDir()
	write(t, filepath.Join(dir, "good.yaml"), text.String())
	for n, animal := range animals {
		// Half of the files sort before the good ones, but no bad object may be
		// older: then it would own its host by right.
		old := strings.Replace(animal, "namespace: zoo", `namespace: zoo, creationTimestamp: "2100-01-01T00:00:00Z"`, 1)
		write(t, filepath.Join(dir, fmt.Sprintf("%c-%d.yaml", "az"[n%2], n)), old)
	}
	d, err := NewDir(dir, quiet())
	if err != nil {
		t.Fatal(err)
	}
	o, notices, err := d.Load()
	if err != nil {
		t.Fatal(err)
	}
	after := NewTranslator(Options{}).Apply(o)
	for n := range good {
		for _, path := range []string{"/", "/x", "/a//b", "/(x", "/*"} {
			host := fmt.Sprintf("g%d.test", n)
			b, a := before.Table.Match(host, path), after.Table.Match(host, path)
			if a == nil || a.Source != b.Source || a.Cluster.Name != b.Cluster.Name || differs(*a.Policy) != "" || len(a.Cluster.Endpoints().Active) != 1 {
				t.Errorf("Match(%q, %q) = %+v among bad objects, want %+v", host, path, a, b)
			}
		}
	}
	said := make(map[string]bool)
	for _, n := range append(notices, after.Notices...) {
		if n.Namespace == "zoo" {
			said[n.Name] = true
		}
		said[n.File] = true
	}
	for n := range animals {
		if file := filepath.Join(dir, fmt.Sprintf("%c-%d.yaml", "az"[n%2], n)); !said[file] {
			t.Errorf("no notice on bad object %d:%s", n, animals[n])
		}
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
