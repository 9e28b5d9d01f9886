package k8s

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The prefixes of annotations that Weir answers for.
const (
	nginxPrefix = "nginx.ingress.kubernetes.io/"
	weirPrefix  = "weir.io/"
)

// The verdicts of Lint.
const (
	Honoured  = "honoured"
	Different = "different"
	Refused   = "refused"
	Unknown   = "unknown"
)

// stance is how Weir answers an annotation or key that it knows.
type stance struct {
	kind stanceKind
	idle string // space-separated values that ask for nothing: always honoured
	note string // what holds instead; a clause that follows a colon
}

type stanceKind uint8

const (
	setting   stanceKind = iota // one of settings
	noEffect                    // tunes something that Weir does not have
	different                   // Weir does what was asked, or close to it, in its own way
	later                       // planned; not in this version
	guard                       // later, and it protects: what it guards is answered with 503
	never                       // will not come
)

func (s stance) verdict(value string) string {
	switch {
	case s.kind == setting || s.kind == noEffect || s.asksNothing(value):
		return Honoured
	case s.kind == different:
		return Different
	}
	return Refused
}

// guards reports whether value asks for what Weir can't do and may not leave
// out.
func (s stance) guards(value string) bool { return s.kind == guard && !s.asksNothing(value) }

func (s stance) asksNothing(value string) bool {
	idle := strings.Fields(s.idle)
	if b, err := strconv.ParseBool(value); err == nil && !b && slices.Contains(idle, "false") {
		return true // "0", "F", "False": ingress-nginx reads booleans so
	}
	return value == "" || slices.Contains(idle, value)
}

// message is what is said about an annotation ("annotation") or ConfigMap key ("key").
func (s stance) message(what, name, value string) (severity Severity, reason, message string) {
	switch {
	case s.kind == setting:
		return Info, "Honoured", what + " " + name + " is honoured"
	case s.asksNothing(value) && s.kind != noEffect:
		return Info, "Honoured", fmt.Sprintf("%s %s: %q asks for nothing that Weir does not do", what, name, value)
	}
	switch s.kind {
	case noEffect:
		return Info, "Honoured", fmt.Sprintf("%s %s has no effect here: %s", what, name, s.note)
	case different:
		return Info, "Different", fmt.Sprintf("%s %s works differently: %s", what, name, s.note)
	case guard:
		return Error, "NotServed", fmt.Sprintf("%s %s is not supported by this version of Weir: "+
			"%s; rather than served without it, its routes answer 503", what, name, s.note)
	case never:
		return Warning, "Refused", fmt.Sprintf("%s %s is refused: %s", what, name, s.note)
	}
	return Warning, "NotSupported", fmt.Sprintf("%s %s is not supported by this version of Weir: %s", what, name, s.note)
}

// nearest returns the known name that differs least from name, or "" if none
// looks like it.
func nearest(name string, known map[string]stance) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", len(name)/3+1
	for k := range known {
		if d := distance(name, k, least); d < least || d == least && best != "" && k < best {
			best, least = k, d
		}
	}
	return best
}

// distance is the number of bytes to insert, delete or replace to make b of a,
// or something above limit if it takes more.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
