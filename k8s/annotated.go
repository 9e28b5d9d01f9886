package k8s

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// rewriting is what annotations ask to be done with paths.
type rewriting struct {
	regex  bool   // ImplementationSpecific paths are regular expressions
	target string // "" if paths are not rewritten
}

// readAnnotations fills what the annotations of Weir's prefixes decide.
func (i *ingress) readAnnotations(known *spelling) rewriting {
	var r rewriting
	for _, key := range slices.Sorted(maps.Keys(i.object.Annotations)) {
		f, ok := judge(key, i.object.Annotations[key], known)
		if !ok {
			continue
		}
		if f.Reason != "Honoured" {
			i.note(f.Severity, f.Field, f.Reason, f.Message, f.Remedy)
		}
		name, ok := strings.CutPrefix(key, nginxPrefix)
		if !ok {
			continue
		}
		value := strings.TrimSpace(f.Value)
		switch {
		case f.Verdict == Honoured && annotations[name].kind == setting && value != "":
			i.overrides = append(i.overrides, override{name, value})
			i.settings += name + "\x00" + value + "\x00"
		case annotations[name].guards(value):
			i.denied = true
		case name == "canary":
			i.canary = f.Verdict != Honoured
		case name == "use-regex":
			r.regex = r.regex || f.Verdict != Honoured
		case name == "rewrite-target":
			r.regex, r.target = r.regex || value != "", value
		case name == "enable-global-auth":
			i.noAuth = value == "false"
		}
	}
	return r
}

// judge returns the finding on one annotation, without the object's name; ok is
// false if the annotation is not of Weir's prefixes.
func judge(key, value string, known *spelling) (f Finding, ok bool) {
	name, ok := strings.CutPrefix(key, nginxPrefix)
	if !ok {
		if name, ok = strings.CutPrefix(key, weirPrefix); !ok {
			return Finding{}, false
		}
		f = unknown("annotation", key, known.annotation(name))
		if f.Remedy == "" {
			f.Remedy = "this version of Weir has no annotations of the prefix " + weirPrefix
		}
	} else if s, ok := annotations[name]; ok {
		f = s.judge("annotation", name, value)
	} else {
		f = unknown("annotation", key, known.annotation(name))
	}
	f.Key, f.Value = key, value
	f.Kind, f.Field = "Ingress", fmt.Sprintf("metadata.annotations[%s]", key)
	return f, true
}

// judge returns verdict and words on a known annotation or key.
func (s stance) judge(what, name, value string) (f Finding) {
	value = strings.TrimSpace(value)
	if s.kind == setting && value != "" {
		if err := checkGlobal(name, value); err != nil {
			f.Verdict, f.Severity, f.Reason = Refused, Warning, "InvalidValue"
			f.Message = fmt.Sprintf("%s %s: %q is not valid, the default stays", what, name, clip(value))
			f.Remedy = err.Error()
			return f
		}
	}
	f.Verdict = s.verdict(value)
	f.Severity, f.Reason, f.Message = s.message(what, name, clip(value))
	return f
}

func unknown(what, key, near string) (f Finding) {
	f.Verdict, f.Severity, f.Reason = Unknown, Warning, "Unknown"
	f.Message = fmt.Sprintf("%s %s is not known and has no effect", what, clip(key))
	if near != "" {
		f.Remedy = fmt.Sprintf("is %s meant?", near)
	}
	return f
}

// clip bounds what a notice quotes of a user's value.
func clip(s string) string {
	if len(s) > 128 {
		return s[:128] + "..."
	}
	return s
}

// spelling finds the nearest known names and remembers some of its answers:
// the same mistake tends to stand in many objects.
type spelling struct{ found map[string]string }

// spellingMax bounds what is remembered, since users choose the names.
const spellingMax = 256

func (s *spelling) annotation(name string) string {
	if near, ok := s.found[name]; ok {
		return near
	}
	near := nearest(name, annotations)
	if near != "" {
		near = nginxPrefix + near
	}
	if s.found == nil {
		s.found = make(map[string]string)
	}
	if len(s.found) < spellingMax {
		s.found[name] = near
	}
	return near
}
