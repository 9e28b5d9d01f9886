package k8s

import (
	"cmp"
	"slices"
)

// Severity says how much a Notice matters.
type Severity uint8

const (
	Info    Severity = iota // nothing is lost
	Warning                 // something is left out or done differently
	Error                   // something that was asked for is not served
)

func (s Severity) String() string { return [...]string{"info", "warning", "error"}[s] }

// Notice is one thing that a user should know about an object. It becomes an
// Event in a cluster, a log line and lint output.
type Notice struct {
	Severity  Severity
	Kind      string // of the object; "" if it concerns a whole file
	Namespace string
	Name      string
	Field     string // path of the field or "metadata.annotations[...]"; may be ""
	Reason    string // CamelCase, from a small fixed set
	Message   string // what is wrong and what Weir does about it
	Remedy    string // what to do; may be ""
	File      string // "" if the object does not come from a file
	Line      int    // from 1; 0 if unknown
}

// compareNotices orders by object, then by what is said about it.
func compareNotices(a, b Notice) int {
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.File, b.File),
		cmp.Compare(a.Line, b.Line),
		cmp.Compare(a.Field, b.Field),
		cmp.Compare(a.Reason, b.Reason),
		cmp.Compare(a.Message, b.Message),
		cmp.Compare(a.Remedy, b.Remedy),
		cmp.Compare(a.Severity, b.Severity),
	)
}

// mergeNotices returns what the sorted lists a and b hold, sorted and without
// duplicates.
func mergeNotices(a, b []Notice) []Notice {
	out := make([]Notice, 0, len(a)+len(b))
	for _, n := range b {
		for len(a) > 0 && compareNotices(a[0], n) < 0 {
			out, a = append(out, a[0]), a[1:]
		}
		out = append(out, n)
	}
	return slices.Compact(append(out, a...))
}

// sortNotices sorts list in place and returns it without duplicates.
func sortNotices(list []Notice) []Notice {
	slices.SortFunc(list, compareNotices)
	return slices.Compact(list)
}
