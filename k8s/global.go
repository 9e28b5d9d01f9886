package k8s

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/weirproxy/weir/l7/route"
)

// global is what the ConfigMap says for all objects.
type global struct {
	defaults defaults
	denied   bool // a key that may not be left out: every route answers 503
	auth     bool // likewise, but not for Ingresses that opt out of global auth
	notices  []Notice
}

// readGlobal reads m, which may be nil: then nothing but defaults holds.
func readGlobal(m *corev1.ConfigMap) global {
	g := global{defaults: defaults{policy: route.DefaultPolicy()}}
	if m == nil {
		return g
	}
	var overrides []override
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		f := judgeKey(key, m.Data[key])
		if f.Reason != "Honoured" {
			n := f.Notice
			n.Namespace, n.Name = m.Namespace, m.Name
			g.notices = append(g.notices, n.advised())
		}
		value := strings.TrimSpace(m.Data[key])
		s := configKeys[key]
		switch {
		case key == "global-auth-url":
			g.auth = s.guards(value)
		case s.guards(value):
			g.denied = true
		case f.Verdict != Honoured || s.kind != setting || value == "":
		case key == "retry-non-idempotent":
			g.defaults.retryNonIdempotent = value == "true"
		default:
			overrides = append(overrides, override{key, value})
		}
	}
	g.defaults.policy = *defaults{policy: g.defaults.policy}.with(overrides)
	return g
}

// judgeKey returns the finding on one ConfigMap key, without the object's name.
func judgeKey(key, value string) Finding {
	var f Finding
	if s, ok := configKeys[key]; ok {
		f = s.judge("key", key, value)
	} else {
		f = unknown("key", key, nearest(key, configKeys))
	}
	f.Key, f.Value = key, value
	f.Kind, f.Field = "ConfigMap", fmt.Sprintf("data[%s]", key)
	return f
}

// checkGlobal is checkSetting for a name that may be retry-non-idempotent.
func checkGlobal(name, value string) error {
	if name != "retry-non-idempotent" {
		return checkSetting(name, value)
	}
	if value != "true" && value != "false" {
		return errors.New("want true or false")
	}
	return nil
}
