package k8s

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzManifest reads any bytes as a manifest file and translates what comes out:
// nothing may panic, the table must compile, and every match must be whole.
func FuzzManifest(f *testing.F) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, in := range inputs {
		data, err := os.ReadFile(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, false)
	}
	for _, animal := range zoo() {
		f.Add([]byte(class+animal), false)
	}
	f.Add([]byte(`{"kind": "List", "apiVersion": "v1", "items": [{"kind": "Ingress", "apiVersion": "networking.k8s.io/v1", "metadata": {"name": "i"},
"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}}]} {"kind": 1}`), true)
	d, err := newDecoder()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, json bool) {
		name := "m.yaml"
		if json {
			name = "m.json"
		}
		docs, err := d.split(name, data)
		for _, doc := range docs {
			if doc.line < 1 || doc.number < 1 {
				t.Fatalf("document %d in line %d", doc.number, doc.line)
			}
		}
		var all []object
		for _, doc := range docs {
			if err != nil && doc.text == nil {
				continue
			}
			objects, faults := d.decode(doc)
			for _, bad := range faults {
				if bad.err == nil || bad.line < 1 {
					t.Fatalf("fault %+v has no error or no line", bad)
				}
			}
			all = append(all, objects...)
		}
		o := NewObjects()
		for _, x := range all {
			o.add(x)
		}
		options := Options{WatchWithoutClass: true, ConfigMap: "t1/settings"}
		tr := NewTranslator(options)
		r := tr.Apply(o)
		if r.Table == nil {
			t.Fatal("the first Apply returned no table")
		}
		for _, h := range r.Table.Hosts() {
			for _, route := range h.Routes {
				if route.Cluster == nil || route.Policy.ConnectTimeout <= 0 || route.Policy.ReadTimeout <= 0 || route.Policy.SendTimeout <= 0 || route.Policy.BodyBytesMax < 0 {
					t.Fatalf("route %+v with policy %+v is not whole", route, route.Policy)
				}
				if normal, err := normalPath(route.Path); err != nil || normal != route.Path {
					t.Fatalf("path %q is not in normal form: %q, %v", route.Path, normal, err)
				}
			}
		}
		if again := tr.Apply(o.Clone()); again.Table != nil || again.EndpointsChanged != 0 {
			t.Fatalf("the second Apply of the same objects = %+v, want no change", again)
		}
		Lint(o, options)
	})
}
