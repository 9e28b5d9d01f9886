package k8s

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/weirproxy/weir/l7/route"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// class is the IngressClass of most tests, and the default one.
const class = `
kind: IngressClass
apiVersion: networking.k8s.io/v1
metadata: {name: weir, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}
spec: {controller: weir.io/ingress}
`

// service returns a Service with port 80 and a slice with one ready endpoint.
func service(namespace, name, address string) string {
	return fmt.Sprintf(`
---
kind: Service
apiVersion: v1
metadata: {name: %[2]s, namespace: %[1]s}
spec: {ports: [{port: 80, targetPort: 8080}]}
---
kind: EndpointSlice
apiVersion: discovery.k8s.io/v1
metadata: {name: %[2]s-1, namespace: %[1]s, labels: {kubernetes.io/service-name: %[2]s}}
addressType: IPv4
ports: [{name: "", port: 8080}]
endpoints: [{addresses: [%[3]s], conditions: {ready: true}}]
`, namespace, name, address)
}

// ingressOf returns an Ingress with one Prefix rule.
func ingressOf(namespace, name, host, path, service string) string {
	return fmt.Sprintf(`
---
kind: Ingress
apiVersion: networking.k8s.io/v1
metadata: {name: %[2]s, namespace: %[1]s}
spec: {rules: [{host: %[3]q, http: {paths: [{path: %[4]q, pathType: Prefix, backend: {service: {name: %[5]s, port: {number: 80}}}}]}}]}
`, namespace, name, host, path, service)
}

// want checks "host/path -> cluster" lines against table.
func want(t *testing.T, table *route.Table, lines ...string) {
	t.Helper()
	for _, line := range lines {
		request, cluster, _ := strings.Cut(line, " -> ")
		host, path, _ := strings.Cut(request, "/")
		if got := serves(table, host, "/"+path); got != cluster {
			t.Errorf("Match(%q, %q) = %q, want %q", host, "/"+path, got, cluster)
		}
	}
}

// reasons counts notices by reason.
func reasons(notices []Notice) map[string]int {
	out := make(map[string]int)
	for _, n := range notices {
		out[n.Reason]++
	}
	return out
}
