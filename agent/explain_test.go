package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExplainTellsThatFileTimesDecide: who owns a host may differ from what a
// running agent remembers.
func TestExplainTellsThatFileTimesDecide(t *testing.T) {
	for _, host := range []string{"own.test", "*.own.test"} {
		dir := t.TempDir()
		for _, namespace := range []string{"t1", "t2"} {
			text := fmt.Sprintf(`{kind: IngressClass, apiVersion: networking.k8s.io/v1, spec: {controller: weir.io/ingress},
  metadata: {name: %[1]s}}
---
{kind: Ingress, apiVersion: networking.k8s.io/v1, metadata: {name: i, namespace: %[1]s},
  spec: {ingressClassName: %[1]s, rules: [{host: %[2]q, http: {paths: [{path: /, pathType: Prefix,
    backend: {service: {name: a, port: {number: 80}}}}]}}]}}
`, namespace, host)
			if err := os.WriteFile(filepath.Join(dir, namespace+".yaml"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		a, err := Explain(Question{Manifests: dir, Method: "GET", URL: strings.Replace(host, "*", "x", 1)})
		if err != nil {
			t.Fatal(err)
		}
		said := false
		for _, n := range a.Notices {
			said = said || strings.Contains(n.Message, "times of their files")
		}
		if !said {
			t.Errorf("host %s: notices %+v, want one that says that file times decide", host, a.Notices)
		}
	}
}
