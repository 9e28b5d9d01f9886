package k8s

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// admittedSet has Ingresses that are served in full, in part, on standby and not
// at all.
const admittedSet = class + `
---
{kind: Ingress, apiVersion: networking.k8s.io/v1, metadata: {namespace: t1, name: own, creationTimestamp: "2026-01-01T00:00:00Z"}, spec: {ingressClassName: weir, rules: [
  {host: a.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]}}
---
{kind: Ingress, apiVersion: networking.k8s.io/v1, metadata: {namespace: t1, name: twin, creationTimestamp: "2026-01-02T00:00:00Z"}, spec: {ingressClassName: weir, rules: [
  {host: a.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]}}
---
{kind: Ingress, apiVersion: networking.k8s.io/v1, metadata: {namespace: t2, name: thief, creationTimestamp: "2026-01-02T00:00:00Z"}, spec: {ingressClassName: weir, rules: [
  {host: a.test, http: {paths: [{path: /login, pathType: Exact, backend: {service: {name: a, port: {number: 80}}}}]}}]}}
---
{kind: Ingress, apiVersion: networking.k8s.io/v1, metadata: {namespace: t2, name: half, creationTimestamp: "2026-01-02T00:00:00Z"}, spec: {ingressClassName: weir, rules: [
  {host: a.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}},
  {host: b.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]}}
---
{kind: Ingress, apiVersion: networking.k8s.io/v1, metadata: {namespace: t2, name: rest, creationTimestamp: "2026-01-02T00:00:00Z"}, spec: {ingressClassName: weir,
  defaultBackend: {service: {name: a, port: {number: 80}}}, rules: [{host: a.test}]}}
---
{kind: Ingress, apiVersion: networking.k8s.io/v1, metadata: {namespace: t2, name: foreign}, spec: {ingressClassName: other, rules: [
  {host: c.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]}}
---
{kind: Ingress, apiVersion: networking.k8s.io/v1, metadata: {namespace: t2, name: canary, annotations: {nginx.ingress.kubernetes.io/canary: "true"}}, spec: {ingressClassName: weir, rules: [
  {host: d.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}]}}]}}
`

func TestAdmittedAreThoseWithAHostInForce(t *testing.T) {
	o, _ := parse(t, admittedSet)
	tr := NewTranslator(Options{})
	want := []types.NamespacedName{name("t1", "own"), name("t1", "twin"), name("t2", "half"), name("t2", "rest")}
	if got := tr.Apply(o).Admitted; !slices.Equal(got, want) {
		t.Errorf("Admitted = %v, want %v", got, want)
	}
	// The host is free again: the thief may have it now.
	want = []types.NamespacedName{name("t2", "half"), name("t2", "rest"), name("t2", "thief")}
	if got := tr.Apply(cut(o, name("t1", "own"), name("t1", "twin"))).Admitted; !slices.Equal(got, want) {
		t.Errorf("Admitted without the owner = %v, want %v", got, want)
	}
}
