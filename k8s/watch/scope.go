package watch

import (
	"slices"
	"strings"
)

// scope is what a feed sees of a kind.
type scope struct {
	namespace string // "" all
	name      string // "" all
	labels    string // selector; "" all
}

// has reports whether an object of this name would be in the scope, labels aside.
func (c scope) has(k key) bool {
	return (c.namespace == "" || c.namespace == k.Namespace) && (c.name == "" || c.name == k.Name)
}

// scoped is one scope of one kind.
type scoped struct {
	kind *kind
	scope
}

// scopes returns what is watched all the time, whatever Ingresses name.
func scopes(c Config) []scoped {
	out := []scoped{{classKind, scope{}}}
	namespaces := c.Objects.WatchNamespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, n := range slices.Compact(slices.Sorted(slices.Values(namespaces))) {
		out = append(out, scoped{ingressKind, scope{namespace: n, labels: c.IngressSelector}},
			scoped{serviceKind, scope{namespace: n}}, scoped{sliceKind, scope{namespace: n}})
	}
	if c.NamespaceSelector != "" {
		out = append(out, scoped{namespaceKind, scope{labels: c.NamespaceSelector}})
	}
	if namespace, name, ok := strings.Cut(c.Objects.ConfigMap, "/"); ok {
		out = append(out, scoped{configMapKind, scope{namespace: namespace, name: name}})
	}
	if c.NodeName != "" {
		out = append(out, scoped{nodeKind, scope{name: c.NodeName}})
	}
	return out
}
