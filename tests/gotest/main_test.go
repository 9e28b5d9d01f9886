package main

import (
	"io"
	"strings"
	"testing"
)

func TestASkipFailsAStrictRunOnly(t *testing.T) {
	in := `{"Action":"output","Package":"p","Test":"T","Output":"no root\n"}
{"Action":"skip","Package":"p","Test":"T"}
{"Action":"skip","Package":"q"}
`
	for _, strict := range []bool{false, true} {
		s := summary{output: map[string][]string{}}
		var out strings.Builder
		s.read(strings.NewReader(in), &out)
		if got := s.report(&out, strict); got != !strict {
			t.Errorf("report(strict %v) = %v, want %v", strict, got, !strict)
		}
		if !strings.Contains(out.String(), "no root") {
			t.Errorf("the reason of the skip is missing in %q", &out)
		}
	}
}

func TestAFailureFailsTheRun(t *testing.T) {
	s := summary{output: map[string][]string{}}
	s.read(strings.NewReader(`{"Action":"fail","Package":"p","Test":"T"}`), io.Discard)
	if s.report(io.Discard, false) {
		t.Error("report = true after a failed test")
	}
}
