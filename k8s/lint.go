package k8s

// Finding is the verdict on one annotation of an Ingress or one key of the
// ConfigMap with global settings.
type Finding struct {
	Notice
	Verdict string // "honoured", "different", "refused" or "unknown"
	Key     string // the annotation with its prefix, or the ConfigMap's key
	Value   string
}

// Lint returns a finding for every annotation and key, sorted like notices.
func Lint(o *Objects, opt Options) []Finding { return nil }
