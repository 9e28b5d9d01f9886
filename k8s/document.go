package k8s

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
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
	finish := func(end int) {
		if text := data[start:end]; !blank(text) {
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
			finish(at)
			number++
			start, startLine = end, line+1
			if rest := bytes.TrimSpace(data[at+3 : end]); len(rest) != 0 && rest[0] != '#' && data[at] == '-' {
				start, startLine = at+3, line // "--- {kind: ...}"
			}
			if docs == nil && blank(data[:at]) {
				number = 1 // a marker before the first document opens it
			}
		}
		at = end
	}
	finish(len(data))
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
		if l := bytes.TrimSpace(text[at:end]); len(l) != 0 && l[0] != '#' {
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
