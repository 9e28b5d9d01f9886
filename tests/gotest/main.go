// Gotest runs "go test" with its arguments and shows one line for each package,
// the output of tests that failed, and every skip with its reason.
//
// With WEIR_REQUIRE_ROOT=1 a skip is a failure: whoever sets it has provided
// all that the tests need.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// event is one line of "go test -json".
type event struct{ Action, Package, Test, Output string }

// summary is what a run came to.
type summary struct {
	output  map[string][]string // of tests that still run or have failed
	skipped []string
	failed  []string
}

func main() {
	cmd := exec.Command("go", append([]string{"test", "-json"}, os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
	s := summary{output: map[string][]string{}}
	s.read(out, os.Stdout)
	err = cmd.Wait()
	if !s.report(os.Stdout, os.Getenv("WEIR_REQUIRE_ROOT") == "1") || err != nil {
		os.Exit(1)
	}
}

func (s *summary) read(r io.Reader, w io.Writer) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(w, lines.Text()) // the go command itself speaks
			continue
		}
		s.take(e, w)
	}
}

func (s *summary) take(e event, w io.Writer) {
	name := e.Package + " " + e.Test
	switch {
	case e.Action == "build-output":
		fmt.Fprint(w, e.Output)
	case e.Action == "output" && e.Test == "":
		if text := strings.TrimSpace(e.Output); text != "PASS" && text != "FAIL" {
			fmt.Fprint(w, e.Output)
		}
	case e.Action == "output":
		s.output[name] = append(s.output[name], e.Output)
	case e.Test == "":
	case e.Action == "fail":
		s.failed = append(s.failed, name)
		fmt.Fprint(w, strings.Join(s.output[name], ""))
		delete(s.output, name)
	case e.Action == "skip":
		s.skipped = append(s.skipped, name)
		fmt.Fprint(w, strings.Join(s.output[name], ""))
		delete(s.output, name)
	case e.Action == "pass":
		delete(s.output, name)
	}
}

// report ends the output and reports whether the run may count as passed.
func (s *summary) report(w io.Writer, strict bool) bool {
	for _, name := range s.failed {
		fmt.Fprintln(w, "FAILED", name)
	}
	for _, name := range s.skipped {
		fmt.Fprintln(w, "SKIPPED", name)
	}
	if strict && len(s.skipped) != 0 {
		fmt.Fprintln(w, "skips count as failures, since WEIR_REQUIRE_ROOT=1")
		return false
	}
	return len(s.failed) == 0
}
