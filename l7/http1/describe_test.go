package http1

import (
	"fmt"
	"strings"
)

// limits are the defaults of the proxy.
var limits = Limits{HeadBytes: 32 << 10, LineBytes: 16 << 10, Fields: 128}

// wire ends each line with CRLF and adds the empty one.
func wire(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }

// fieldsOf lists the fields that are forwarded, and those that aren't after
// "drop".
func fieldsOf(h *Head) string {
	var kept, dropped []string
	for i := range h.Len() {
		s := fmt.Sprintf("%s=%s", h.Name(i), h.Value(i))
		if h.Drop(i) {
			dropped = append(dropped, s)
		} else {
			kept = append(kept, s)
		}
	}
	return fmt.Sprintf("%q drop %q", kept, dropped)
}

// describe gives everything that a parsed request says but its fields.
func describe(r *Request) string {
	s := fmt.Sprintf("%s %s path=%s", r.MethodText, r.Target, r.Path)
	add := func(format string, v any) { s += fmt.Sprintf(" "+format, v) }
	if len(r.Query) > 0 {
		add("query=%s", r.Query)
	}
	if r.Rewritten {
		add("%s", "rewritten")
	}
	add("host=%s", r.Host)
	if string(r.Authority) != string(r.Host) {
		add("authority=%s", r.Authority)
	}
	if r.Minor != 1 {
		add("minor=%d", r.Minor)
	}
	if r.Body != BodyNone || r.Length != 0 {
		add("%s", fmt.Sprintf("body=%s/%d", r.Body, r.Length))
	}
	if r.Close {
		add("%s", "close")
	}
	if r.Expect100 {
		add("%s", "expect")
	}
	if r.TETrailers {
		add("%s", "trailers")
	}
	if r.Upgrade != nil {
		add("upgrade=%s", r.Upgrade)
	}
	if r.WebSocketKey != nil {
		add("key=%s", r.WebSocketKey)
	}
	return s
}

// describeResponse is describe for responses.
func describeResponse(r *Response) string {
	s := fmt.Sprintf("%d %q body=%s/%d", r.Status, r.ReasonPhrase, r.Body, r.Length)
	if r.Declared >= 0 {
		s += fmt.Sprintf(" declared=%d", r.Declared)
	}
	if r.Minor != 1 {
		s += fmt.Sprintf(" minor=%d", r.Minor)
	}
	if r.Close {
		s += " close"
	}
	if r.Upgrade != nil {
		s += " upgrade=" + string(r.Upgrade)
	}
	if r.WebSocketAccept != nil {
		s += " accept=" + string(r.WebSocketAccept)
	}
	return s
}

// outcome is what a parse returned: how far it came, or why it did not.
func outcome(n int, err *Error) string {
	if err != nil {
		return fmt.Sprintf("%d %s", err.Status, err.Reason)
	}
	return fmt.Sprint(n)
}

// parseRequest parses a copy of s with nothing behind it.
func parseRequest(s string, lim *Limits) (*Request, int, *Error) {
	r := new(Request)
	n, err := r.Parse([]byte(s)[:len(s):len(s)], lim)
	return r, n, err
}
