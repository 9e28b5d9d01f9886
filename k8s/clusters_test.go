package k8s

import (
	"strings"
	"testing"
)

// TestBadPortNameHarmsNobody: the name "80" must not be taken for the number.
func TestBadPortNameHarmsNobody(t *testing.T) {
	bad := strings.Replace(ingressOf("t1", "bad", "bad.test", "/", "a"), "number: 80", `name: "80"`, 1)
	if !strings.Contains(bad, `name: "80"`) {
		t.Fatal("the port's number was not replaced")
	}
	for _, order := range []string{ingressOf("t1", "good", "good.test", "/", "a") + bad, bad + ingressOf("t1", "good", "good.test", "/", "a")} {
		o, _ := parse(t, class+service("t1", "a", "10.0.0.1")+order)
		r := NewTranslator(Options{}).Apply(o)
		want(t, r.Table, "good.test/ -> t1/a:80", "bad.test/ -> 503 refused")
		if reasons(r.Notices)["InvalidBackend"] != 1 {
			t.Errorf("notices %v, want InvalidBackend", r.Notices)
		}
	}
}

// TestPortsWithOneNumber: a Service may have a number twice, as TCP and as UDP,
// and a file may hold one that no API server would take.
func TestPortsWithOneNumber(t *testing.T) {
	const manifest = class + `
---
kind: Service
apiVersion: v1
metadata: {name: a, namespace: t1}
spec: {ports: [{name: dns-udp, port: 80, protocol: UDP}, {name: one, port: 80}, {name: two, port: 80}]}
---
kind: EndpointSlice
apiVersion: discovery.k8s.io/v1
metadata: {name: a-1, namespace: t1, labels: {kubernetes.io/service-name: a}}
addressType: IPv4
ports: [{name: one, port: 8001}, {name: two, port: 8002}, {name: dns-udp, port: 53, protocol: UDP}]
endpoints: [{addresses: [10.0.0.1]}]
`
	named := func(name string) string {
		return strings.Replace(ingressOf("t1", name, name+".test", "/", "a"), "number: 80", "name: "+name, 1)
	}
	o, _ := parse(t, manifest+named("two")+named("dns-udp")+named("one")+ingressOf("t1", "number", "number.test", "/", "a"))
	r := NewTranslator(Options{}).Apply(o)
	want(t, r.Table, "one.test/ -> t1/a:80", "number.test/ -> t1/a:80", "two.test/ -> t1/a:two", "dns-udp.test/ -> 503 t1/a:dns-udp")
	for host, address := range map[string]string{"one.test": "10.0.0.1:8001", "two.test": "10.0.0.1:8002"} {
		if got := strings.Join(addresses(r.Table.Match(host, "/").Cluster), " "); got != address {
			t.Errorf("%s has endpoints %q, want %q", host, got, address)
		}
	}
}
