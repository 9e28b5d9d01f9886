package k8s

import (
	"fmt"
	"slices"
	"testing"
)

func TestLintJudgesEverything(t *testing.T) {
	manifest := class + `
---
kind: Ingress
apiVersion: networking.k8s.io/v1
metadata:
  name: i
  namespace: t1
  annotations:
    nginx.ingress.kubernetes.io/proxy-read-timeout: "60"
    nginx.ingress.kubernetes.io/proxy-send-timeout: "soon"
    nginx.ingress.kubernetes.io/proxy-buffering: "on"
    nginx.ingress.kubernetes.io/ssl-redirect: "false"
    nginx.ingress.kubernetes.io/auth-url: http://auth.test/
    nginx.ingress.kubernetes.io/server-snippet: deny all;
    nginx.ingress.kubernetes.io/upstream-keepalive-timeout: "60"
    unrelated.test/key: value
spec:
  tls: [{hosts: [a.test]}]
  defaultBackend: {service: {name: a, port: {number: 80}}}
---
kind: Ingress
apiVersion: networking.k8s.io/v1
metadata: {name: foreign, annotations: {nginx.ingress.kubernetes.io/auth-url: x}}
spec: {ingressClassName: other, defaultBackend: {service: {name: a, port: {number: 80}}}}
---
kind: IngressClass
apiVersion: networking.k8s.io/v1
metadata: {name: other}
spec: {controller: example.test/other}
---
kind: ConfigMap
apiVersion: v1
metadata: {name: settings, namespace: t1}
data: {use-gzip: "true", proxy-body-size: 1m, nosuchkey: x, worker-cpu-affinity: auto}
`
	o, _ := parse(t, manifest)
	var got []string
	for _, f := range Lint(o, Options{ConfigMap: "t1/settings"}) {
		if f.Message == "" || f.File == "" || f.Line == 0 || f.Name == "" {
			t.Errorf("finding %+v lacks message or place", f)
		}
		got = append(got, fmt.Sprintf("%s %s %s=%s", f.Verdict, f.Severity, f.Key, f.Value))
	}
	want := []string{
		"unknown warning nosuchkey=x",
		"honoured info proxy-body-size=1m",
		"refused warning use-gzip=true",
		"different info worker-cpu-affinity=auto",
		"refused error nginx.ingress.kubernetes.io/auth-url=http://auth.test/",
		"different info nginx.ingress.kubernetes.io/proxy-buffering=on",
		"honoured info nginx.ingress.kubernetes.io/proxy-read-timeout=60",
		"refused warning nginx.ingress.kubernetes.io/proxy-send-timeout=soon",
		"refused warning nginx.ingress.kubernetes.io/server-snippet=deny all;",
		"honoured info nginx.ingress.kubernetes.io/ssl-redirect=false",
		"unknown warning nginx.ingress.kubernetes.io/upstream-keepalive-timeout=60",
		"refused info spec.tls=",
	}
	if !slices.Equal(got, want) {
		t.Errorf("Lint = \n%q, want \n%q", got, want)
	}
}
