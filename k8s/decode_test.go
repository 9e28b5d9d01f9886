package k8s

import (
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
