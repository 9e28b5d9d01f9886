package k8s

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestSplitYAML(t *testing.T) {
	tests := []struct {
		name, text string
		want       []document
	}{
		{"one document", "a: 1\n", []document{{1, 1, []byte("a: 1\n"), false}}},
		{"marker before the first does not count", "---\na: 1\n---\nb: 2", []document{{1, 2, []byte("a: 1\n"), false}, {2, 4, []byte("b: 2"), false}}},
		{"comments are skipped", "# x\n\na: 1\n", []document{{1, 3, []byte("a: 1\n"), false}}},
		{"empty documents are counted", "a: 1\n---\n# nothing\n---\nb: 2\n", []document{{1, 1, []byte("a: 1\n"), false}, {3, 5, []byte("b: 2\n"), false}}},
		{"content on the marker's line", "a: 1\n--- {b: 2}\n", []document{{1, 1, []byte("a: 1\n"), false}, {2, 2, []byte(" {b: 2}\n"), false}}},
		{"end marker", "a: 1\n...\nb: 2\n", []document{{1, 1, []byte("a: 1\n"), false}, {2, 3, []byte("b: 2\n"), false}}},
		{"dashes inside a line", "a: |\n  ---\n---x: 1\n", []document{{1, 1, []byte("a: |\n  ---\n---x: 1\n"), false}}},
		{"CRLF", "a: 1\r\n---\r\nb: 2\r\n", []document{{1, 1, []byte("a: 1\r\n"), false}, {2, 3, []byte("b: 2\r\n"), false}}},
		{"directive before the marker", "# x\n%YAML 1.1\n# y\n---\na: 1\n---\nb: 2\n", []document{{1, 5, []byte("a: 1\n"), false}, {2, 7, []byte("b: 2\n"), false}}},
		{"directive without a marker", "%YAML 1.1\na: 1\n", []document{{1, 1, []byte("%YAML 1.1\na: 1\n"), false}}},
		{"nothing", "# only a comment", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := splitYAML([]byte(test.text)); !reflect.DeepEqual(got, test.want) {
				t.Errorf("splitYAML(%q) = %+v, want %+v", test.text, got, test.want)
			}
		})
	}
}

func TestSplitJSON(t *testing.T) {
	docs, err := splitJSON([]byte("{\"a\": 1}\n\t{\"b\":\n2}\n{broken"))
	if err == nil || len(docs) != 3 {
		t.Fatalf("splitJSON = %+v, %v, want 2 values and a broken one", docs, err)
	}
	if string(docs[1].text) != "{\"b\":\n2}" || docs[1].line != 2 || docs[2].line != 4 || docs[2].text != nil {
		t.Errorf("splitJSON = %+v, want the second on line 2 and the broken one on line 4", docs)
	}
}

func TestDecodeNamesTheField(t *testing.T) {
	d, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	const head = "kind: Ingress\napiVersion: networking.k8s.io/v1\nmetadata: {name: i}\n"
	tests := []struct {
		name, text, want string
		line             int
	}{
		{"unknown field", head + "spec:\n  rules:\n  - hots: x\n", `unknown field "spec.rules[0].hots"`, 15},
		{"wrong case is unknown", head + "spec:\n  Rules: []\n", `unknown field "spec.Rules"`, 14},
		{"wrong type", head + "spec: {rules: 1}\n", "rules", 10},
		{"repeated key", head + "spec: {}\nspec: {}\n", `line 14: key "spec" already set`, 14},
		{"no kind", "apiVersion: v1\nmetadata: {name: x}\n", "kind or apiVersion is missing", 10},
		{"no name", "apiVersion: v1\nkind: Service\n", "metadata.name", 10},
		{"not an object", "[1]", "not an object", 10},
		{"line ends of old", "kind: Service\rapiVersion: v1\r---\rkind: X\r", "ends in CR alone", 10},
		{"comment with another line end", "# all\u2028kind: Service\n", "U+2028", 10},
		{"marker after another line end", head + "spec: {}\n# x\u0085---\nkind: X\n", "document marker", 10},
		{"not UTF-8", "\xff\xfek\x00i\x00n\x00d\x00", "not UTF-8", 10},
		{"list in a list", "kind: List\napiVersion: v1\nitems: [{kind: List, apiVersion: v1, items: []}]", "does not concern", 10},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects, faults := d.decode(document{number: 1, line: 10, text: []byte(test.text)})
			if len(objects) != 0 || len(faults) != 1 {
				t.Fatalf("decode = %v, %v, want one fault", objects, faults)
			}
			if f := faults[0]; !strings.Contains(f.err.Error(), test.want) || f.line != test.line {
				t.Errorf("decode = %q in line %d, want %q in line %d", f.err, f.line, test.want, test.line)
			}
		})
	}
}

func TestListsAreFlattened(t *testing.T) {
	o, notices := parse(t, `
kind: IngressClassList
apiVersion: networking.k8s.io/v1
items: [{metadata: {name: a}}, {metadata: {name: b}}]
---
kind: List
apiVersion: v1
items: [{kind: Secret, apiVersion: v1, metadata: {name: s}, stringData: {k: v}}]
`)
	if len(o.IngressClasses) != 2 || len(o.Secrets) != 1 || len(notices) != 0 {
		t.Errorf("got %d classes, %d secrets, notices %v, want 2, 1, none", len(o.IngressClasses), len(o.Secrets), notices)
	}
}

// TestNoDocumentVanishes reads files whose documents a line-wise reader could
// miss: each must yield its object or an error.
func TestNoDocumentVanishes(t *testing.T) {
	const json = `{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"v": "1"}}`
	tests := []struct {
		name, file, text string
		read             bool
	}{
		{"byte order mark in YAML", "m.yaml", "\ufeff" + configMap("a", "1"), true},
		{"byte order mark in JSON", "m.json", "\ufeff" + json, true},
		{"directive", "m.yaml", "%YAML 1.1\n" + configMap("a", "1"), true},
		{"CRLF", "m.yaml", strings.ReplaceAll(configMap("a", "1"), "\n", "\r\n"), true},
		{"separator in a string", "m.yaml", strings.Replace(configMap("a", "1"), "{v", "{w: \"\u2028x\", v", 1), true},
		{"CR", "m.yaml", "# comment\r" + strings.ReplaceAll(configMap("a", "1"), "\n", "\r"), false},
		{"only a comment for us", "m.yaml", "# comment\u2028kind: ConfigMap", false},
		{"second after a separator", "m.yaml", "kind: X # \u2029" + configMap("a", "1"), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, test.file), test.text)
			d, err := NewDir(dir, quiet())
			if err != nil {
				t.Fatal(err)
			}
			o, notices, err := d.Load()
			if err != nil {
				t.Fatal(err)
			}
			got := sourceUpdate{objects: o}.values()
			if test.read && (got != "a=1" || len(notices) != 0) || !test.read && reasons(notices)["InvalidManifest"] == 0 {
				t.Errorf("objects %q, notices %v, want read = %v", got, notices, test.read)
			}
		})
	}
}
