package cases

import (
	"testing"

	"github.com/weirproxy/weir/tests/rig"
)

func TestCB01ExactStaysExactBesideAnIngressThatRewrites(t *testing.T) {
	w := newWorld(t, "a b", []rig.Object{
		rig.Ingress("t1", "exact", rig.R("w.example.test", "/changelog", "Exact", "a")),
		rig.Ingress("t1", "rewrites", rig.R("w.example.test", "/api", "Prefix", "b")).Annotate(rig.Nginx+"rewrite-target", "/$2"),
	})
	for path, want := range map[string]string{
		"/changelog": "a", "/changelog?x=1": "a", "/changelogXYZ": "404", "/CHANGELOG": "404", "/Changelog": "404",
		"/changelog/": "404", "/changelog/1": "404", "/change": "404", "/x/changelog": "404",
	} {
		w.expect("w.example.test", path, want)
	}
}

func TestCB02PrefixComparesWholeSegments(t *testing.T) {
	w := newWorld(t, "a b c", []rig.Object{rig.Ingress("t1", "i1",
		rig.R("f.example.test", "/ba", "Prefix", "a"),
		rig.R("f.example.test", "/ba/x/", "Prefix", "b"),
		rig.R("f.example.test", "/ba/x", "Exact", "c"))})
	for path, want := range map[string]string{
		"/ba": "a", "/ba/": "a", "/banana": "404", "/ba/x": "c", "/ba/x/": "b", "/ba/x/y": "b", "/ba/xx": "a",
		"/BA": "404", "/": "404", "/ba?x=/ba/x": "a", "/b%61/x": "c", "/ba/./x": "c", "/q/../ba": "a",
	} {
		w.expect("f.example.test", path, want)
	}
}

func TestCB08StarInAPrefixIsALiteral(t *testing.T) {
	w := newWorld(t, "a b", []rig.Object{
		rig.Ingress("t1", "bad", rig.R("s.example.test", "/*", "Prefix", "a")),
		rig.Ingress("t1", "good", rig.R("s.example.test", "/ok", "Prefix", "b")),
	})
	w.expect("s.example.test", "/ok", "b")
	w.expect("s.example.test", "/x", "404")
	w.expect("s.example.test", "/*/x", "a")
	w.noticed(`"bad"`, "/*")
}
