package agent

import (
	"cmp"
	"slices"

	"github.com/weirproxy/weir/k8s"
)

// Report is what Lint finds in a directory of manifests.
type Report struct {
	Objects []ObjectReport `json:"objects"` // only those with something to tell, sorted

	Ingresses int `json:"ingresses"` // served, in part at least
	Hosts     int `json:"hosts"`
	Routes    int `json:"routes"`

	// Verdicts on annotations and keys, and notices by severity.
	Honoured  int `json:"honoured"`
	Different int `json:"different"`
	Refused   int `json:"refused"`
	Unknown   int `json:"unknown"`
	Infos     int `json:"infos"`
	Warnings  int `json:"warnings"`
	Errors    int `json:"errors"`
}

// Clean reports whether everything that the manifests ask for is served: nothing
// refused or unknown, no warning, no error.
func (r *Report) Clean() bool { return r.Refused+r.Unknown+r.Warnings+r.Errors == 0 }

// ObjectReport is about one object, or one file if Kind is "".
type ObjectReport struct {
	Kind      string        `json:"kind,omitempty"`
	Namespace string        `json:"namespace,omitempty"`
	Name      string        `json:"name,omitempty"`
	File      string        `json:"file,omitempty"`
	Findings  []FindingView `json:"findings,omitempty"`
	Notices   []NoticeView  `json:"notices,omitempty"`
}

// FindingView is the verdict on one annotation or one key of the ConfigMap.
type FindingView struct {
	Verdict string `json:"verdict"` // "honoured", "different", "refused" or "unknown"
	Key     string `json:"key"`
	Value   string `json:"value"`
	Message string `json:"message,omitempty"`
	Remedy  string `json:"remedy,omitempty"`
	Line    int    `json:"line,omitempty"`
}

// Lint tells what an agent would make of the objects in dir. The error is about
// the directory only.
func Lint(dir string, options k8s.Options) (Report, error) {
	f, objects, err := translate(dir, options)
	if err != nil {
		return Report{}, err
	}
	r := Report{Objects: []ObjectReport{}, Ingresses: f.Ingresses, Hosts: f.Hosts, Routes: f.Routes}
	g := groups{}
	said := map[k8s.Notice]bool{}
	for _, finding := range k8s.Lint(objects, serving(options)) {
		r.countVerdict(finding.Verdict)
		o := g.of(finding.Notice)
		o.Findings = append(o.Findings, findingView(finding))
		said[sameWords(finding.Notice)] = true
	}
	for _, n := range f.notices {
		if said[sameWords(n)] {
			continue // the finding says it
		}
		r.countSeverity(n.Severity)
		o := g.of(n)
		o.Notices = append(o.Notices, noticeView(n))
	}
	r.Objects = g.sorted()
	return r, nil
}

// sameWords returns what a notice and a finding about one thing have in common.
func sameWords(n k8s.Notice) k8s.Notice {
	return k8s.Notice{Kind: n.Kind, Namespace: n.Namespace, Name: n.Name, Field: n.Field, Reason: n.Reason, Message: n.Message}
}

func (r *Report) countVerdict(verdict string) {
	switch verdict {
	case "honoured":
		r.Honoured++
	case "different":
		r.Different++
	case "refused":
		r.Refused++
	default:
		r.Unknown++
	}
}

func (r *Report) countSeverity(s k8s.Severity) {
	switch s {
	case k8s.Info:
		r.Infos++
	case k8s.Warning:
		r.Warnings++
	default:
		r.Errors++
	}
}

func findingView(f k8s.Finding) FindingView {
	return FindingView{Verdict: f.Verdict, Key: f.Key, Value: f.Value, Message: f.Message, Remedy: f.Remedy, Line: f.Line}
}

// object names what a notice is about: an object, or a file if kind is "".
type object struct{ kind, namespace, name, file string }

// groups collects reports by object.
type groups map[object]*ObjectReport

func (g groups) of(n k8s.Notice) *ObjectReport {
	key := object{kind: n.Kind, namespace: n.Namespace, name: n.Name}
	if n.Kind == "" {
		key.file = n.File
	}
	o := g[key]
	if o == nil {
		o = &ObjectReport{Kind: n.Kind, Namespace: n.Namespace, Name: n.Name}
		g[key] = o
	}
	o.File = cmp.Or(o.File, n.File)
	return o
}

func (g groups) sorted() []ObjectReport {
	out := make([]ObjectReport, 0, len(g))
	for _, o := range g {
		out = append(out, *o)
	}
	slices.SortFunc(out, func(a, b ObjectReport) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File))
	})
	return out
}
