package k8s

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"unicode/utf8"
)

// document is one object or list in a file, as text.
type document struct {
	number int // in its file, from 1
	line   int // of its first line, from 1
	text   []byte
	json   bool // not to be read as YAML, which has other rules for tabs
}

// splitYAML cuts data at the document markers of YAML. Documents without
// content are left out, but counted.
func splitYAML(data []byte) []document {
	var docs []document
	number, start, startLine, line := 1, 0, 1, 1
	finish := func(end int, marked bool) {
		if text := data[start:end]; !blank(text) && !(marked && directive(text)) {
			skipped := leadingBlank(text)
			docs = append(docs, document{number, startLine + bytes.Count(text[:skipped], []byte("\n")), text[skipped:], false})
		}
	}
	for at := 0; at < len(data); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if marker(data[at:end]) {
			finish(at, data[at] == '-')
			number++
			start, startLine = end, line+1
			if rest := bytes.TrimSpace(data[at+3 : end]); len(rest) != 0 && rest[0] != '#' && data[at] == '-' {
				start, startLine = at+3, line // "--- {kind: ...}"
			}
			if docs == nil && (blank(data[:at]) || directive(data[:at])) {
				number = 1 // a marker before the first document opens it
			}
		}
		at = end
	}
	finish(len(data), false)
	return docs
}

// marker reports whether line starts ("---") or ends ("...") a document: both
// count only at its very start (YAML 1.2, 9.1).
func marker(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false
	}
	return len(line) == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\n' || line[3] == '\r'
}

// directive reports whether text is nothing but "%YAML" (YAML 1.2, 6.8.1), which
// may stand above a "---". What version it names makes no difference to manifests.
func directive(text []byte) bool {
	text = text[leadingBlank(text):]
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	return bytes.HasPrefix(line, []byte("%YAML")) && !oddBreak(line) && blank(rest)
}

// Besides LF and CRLF these end lines in YAML 1.1 (5.4): CR, NEL, LS and PS.
var (
	loneReturn = regexp.MustCompile(`\r[^\n]`)
	oddBreaks  = regexp.MustCompile(`\r[^\n]|[\x{85}\x{2028}\x{2029}]`)
	oddComment = regexp.MustCompile(`^[ \t]*#[^\n]*[\x{85}\x{2028}\x{2029}]`)
	oddMarker  = regexp.MustCompile(`[\x{85}\x{2028}\x{2029}](?:---|\.\.\.)`)
)

// oddBreak reports whether a YAML parser would see more than one line in line.
func oddBreak(line []byte) bool { return oddBreaks.Match(line) }

// checkYAML says why a YAML parser would not read all of text, or nil.
func checkYAML(text []byte) error {
	switch {
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		return errors.New("the file is not UTF-8: write it in that encoding")
	case loneReturn.Match(text):
		return errors.New("a line ends in CR alone: end lines in LF or CRLF")
	case oddComment.Match(text):
		return errors.New("a comment ends in a Unicode line separator (U+0085, U+2028 or U+2029): end lines in LF")
	case oddMarker.Match(text):
		return errors.New("a document marker follows a Unicode line separator (U+0085, U+2028 or U+2029): end lines in LF")
	}
	return nil
}

// blank reports whether text has nothing but space and comments.
func blank(text []byte) bool { return leadingBlank(text) == len(text) }

// leadingBlank returns the length of the empty and comment lines at the start.
func leadingBlank(text []byte) int {
	at := 0
	for at < len(text) {
		end := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if l := bytes.TrimSpace(text[at:end]); len(l) != 0 && l[0] != '#' || oddBreak(text[at:end]) {
			return at
		}
		at = end
	}
	return at
}

// splitJSON cuts data into the values that follow each other. If one is broken,
// it is returned as the last document together with the error.
func splitJSON(data []byte) ([]document, error) {
	var docs []document
	decoder := json.NewDecoder(bytes.NewReader(data))
	counted, line := 0, 1
	lineAt := func(at int) int { // of ever later bytes
		if at = min(at, len(data)); at > counted {
			line += bytes.Count(data[counted:at], []byte("\n"))
			counted = at
		}
		return line
	}
	for number := 1; ; number++ {
		start := int(decoder.InputOffset())
		for start < len(data) && bytes.IndexByte([]byte(" \t\r\n"), data[start]) >= 0 {
			start++
		}
		first := lineAt(start)
		var value json.RawMessage
		err := decoder.Decode(&value)
		switch {
		case errors.Is(err, io.EOF):
			return docs, nil
		case err != nil:
			var syntax *json.SyntaxError
			if errors.As(err, &syntax) {
				first = lineAt(int(syntax.Offset))
			}
			return append(docs, document{number, first, nil, true}), err
		}
		docs = append(docs, document{number, first, value, true})
	}
}
