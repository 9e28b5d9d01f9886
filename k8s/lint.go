package k8s

import (
	"maps"
	"slices"
)

// Finding is the verdict on one annotation of an Ingress or one key of the
// ConfigMap with global settings. Its notice is there for honoured ones too.
type Finding struct {
	Notice
	Verdict string // Honoured, Different, Refused or Unknown
	Key     string // the annotation with its prefix, the ConfigMap's key, or "spec.tls"
	Value   string
}

// Lint returns a finding for every annotation, key and TLS section that Weir
// would meet, sorted like notices. Ingresses of other controllers are left out;
// those whose class does not exist (yet) are not.
func Lint(o *Objects, opt Options) []Finding {
	var out []Finding
	var known spelling
	c := newClasses(opt, o.IngressClasses)
	for key, i := range o.Ingresses {
		if m, _ := c.of(i); m == foreign || !opt.watches(key.Namespace) {
			continue
		}
		var found []Finding
		for name, value := range i.Annotations {
			if f, ok := judge(name, value, &known); ok {
				found = append(found, f)
			}
		}
		if len(i.Spec.TLS) != 0 {
			found = append(found, Finding{Verdict: Refused, Key: "spec.tls",
				Notice: Notice{Severity: Info, Kind: "Ingress", Field: "spec.tls", Reason: "NoTLS", Message: tlsNote}})
		}
		for n := range found {
			found[n].Namespace, found[n].Name = key.Namespace, key.Name
		}
		out = append(out, found...)
	}
	t := Translator{options: opt}
	if m := t.findConfigMap(o); m != nil {
		for _, key := range slices.Sorted(maps.Keys(m.Data)) {
			f := judgeKey(key, m.Data[key])
			f.Namespace, f.Name = m.Namespace, m.Name
			out = append(out, f)
		}
	}
	for n := range out {
		locate(o.origin, &out[n].Notice)
	}
	slices.SortFunc(out, func(a, b Finding) int { return compareNotices(a.Notice, b.Notice) })
	return out
}
