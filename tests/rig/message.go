package rig

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Field is a header or trailer field with its name as it was spelled.
type Field struct{ Name, Value string }

// Message is an HTTP/1 message as it came over the wire.
type Message struct {
	Start    string // request line or status line
	Fields   []Field
	Body     []byte
	Trailers []Field
	Chunked  bool
	Status   int        // of an answer
	Interim  []*Message // 1xx answers that came before it
}

// Values returns all values of the fields called name, in any case.
func (m *Message) Values(name string) []string {
	var list []string
	for _, f := range m.Fields {
		if strings.EqualFold(f.Name, name) {
			list = append(list, f.Value)
		}
	}
	return list
}

// Value returns the values of the fields called name, joined by ", ".
func (m *Message) Value(name string) string { return strings.Join(m.Values(name), ", ") }

// Has reports whether a field is there.
func (m *Message) Has(name string) bool { return len(m.Values(name)) != 0 }

var errGrammar = errors.New("not HTTP")

// readLine reads a line that must end with CRLF.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		if err == io.EOF && line != "" {
			err = io.ErrUnexpectedEOF
		}
		return "", err
	}
	if !strings.HasSuffix(line, "\r\n") || strings.Contains(line[:len(line)-2], "\r") {
		return "", fmt.Errorf("%w: line %q", errGrammar, line)
	}
	return line[:len(line)-2], nil
}

// readFields reads lines up to and including the empty one.
func readFields(r *bufio.Reader) ([]Field, error) {
	var fields []Field
	for {
		line, err := readLine(r)
		if err != nil {
			return fields, noEOF(err)
		}
		if line == "" {
			return fields, nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return fields, fmt.Errorf("%w: field %q", errGrammar, line)
		}
		fields = append(fields, Field{name, strings.Trim(value, " \t")})
	}
}

// readHead reads a start line and its fields.
func readHead(r *bufio.Reader) (*Message, error) {
	start, err := readLine(r)
	if err != nil {
		return nil, err
	}
	m := &Message{Start: start}
	if m.Fields, err = readFields(r); err != nil {
		return m, err
	}
	return m, nil
}

// framing returns the length of m's body: -1 chunked, -2 none declared.
func (m *Message) framing() (int64, error) {
	te, cl := m.Values("Transfer-Encoding"), m.Values("Content-Length")
	switch {
	case len(te) == 1 && te[0] == "chunked" && len(cl) == 0:
		m.Chunked = true
		return -1, nil
	case len(te) == 0 && len(cl) == 1:
		n, err := strconv.ParseUint(cl[0], 10, 63)
		if err != nil {
			return 0, fmt.Errorf("%w: Content-Length %q", errGrammar, cl[0])
		}
		return int64(n), nil
	case len(te) == 0 && len(cl) == 0:
		return -2, nil
	}
	return 0, fmt.Errorf("%w: Transfer-Encoding %q with Content-Length %q", errGrammar, te, cl)
}

// readChunks reads a chunked body and its trailers.
func (m *Message) readChunks(r *bufio.Reader) error {
	for {
		line, err := readLine(r)
		if err != nil {
			return noEOF(err)
		}
		size, err := strconv.ParseUint(line, 16, 63)
		if err != nil {
			return fmt.Errorf("%w: chunk size %q", errGrammar, line)
		}
		if size == 0 {
			m.Trailers, err = readFields(r)
			return err
		}
		if err := m.readLength(r, int64(size)); err != nil {
			return err
		}
		if end, err := readLine(r); err != nil || end != "" {
			return fmt.Errorf("%w: %q after chunk, %w", errGrammar, end, noEOF(err))
		}
	}
}

// readLength appends n bytes to the body; what came before an error is kept.
func (m *Message) readLength(r *bufio.Reader, n int64) error {
	at := len(m.Body)
	m.Body = append(m.Body, make([]byte, n)...)
	got, err := io.ReadFull(r, m.Body[at:])
	m.Body = m.Body[:at+got]
	return noEOF(err)
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
