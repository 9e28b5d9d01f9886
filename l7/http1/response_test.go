package http1

import (
	"strings"
	"testing"
)

var goodResponses = []struct {
	name   string
	method Method
	head   string
	want   string
}{
	{"length", MethodGet, wire("HTTP/1.1 200 OK", "Content-Length: 5"), `200 "OK" body=length/5 declared=5`},
	{"length 0", MethodGet, wire("HTTP/1.1 200 OK", "Content-Length: 0"), `200 "OK" body=length/0 declared=0`},
	{"chunked", MethodGet, wire("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"), `200 "OK" body=chunked/0`},
	{"until close", MethodGet, wire("HTTP/1.1 200 OK", "X: 1"), `200 "OK" body=until_close/0 close`},
	{"no field", MethodGet, wire("HTTP/1.1 200 OK"), `200 "OK" body=until_close/0 close`},
	{"empty phrase", MethodGet, wire("HTTP/1.1 404 ", "Content-Length: 0"), `404 "" body=length/0 declared=0`},
	{"phrase and its space missing", MethodGet, wire("HTTP/1.1 404", "Content-Length: 0"), `404 "" body=length/0 declared=0`},
	{"phrase of any text", MethodGet, wire("HTTP/1.1 599 a\tb \xe4", "Content-Length: 0"), "599 \"a\\tb \\xe4\" body=length/0 declared=0"},
	{"close", MethodGet, wire("HTTP/1.1 200 OK", "Content-Length: 0", "Connection: close"), `200 "OK" body=length/0 declared=0 close`},
	{"1.0", MethodGet, wire("HTTP/1.0 200 OK", "Content-Length: 0"), `200 "OK" body=length/0 declared=0 minor=0 close`},
	{"1.0 keeps alive", MethodGet, wire("HTTP/1.0 200 OK", "Content-Length: 0", "Connection: keep-alive"), `200 "OK" body=length/0 declared=0 minor=0`},
	{"1.0 can't keep alive without length", MethodGet, wire("HTTP/1.0 200 OK", "Connection: keep-alive"), `200 "OK" body=until_close/0 minor=0 close`},
	{"HEAD with length", MethodHead, wire("HTTP/1.1 200 OK", "Content-Length: 5"), `200 "OK" body=none/0 declared=5`},
	{"HEAD chunked", MethodHead, wire("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"), `200 "OK" body=none/0`},
	{"HEAD without framing", MethodHead, wire("HTTP/1.1 200 OK", "X: 1"), `200 "OK" body=none/0`},
	{"304 with length", MethodGet, wire("HTTP/1.1 304 Not Modified", "Content-Length: 5"), `304 "Not Modified" body=none/0 declared=5`},
	{"304 chunked", MethodGet, wire("HTTP/1.1 304 Not Modified", "Transfer-Encoding: chunked"), `304 "Not Modified" body=none/0`},
	{"204", MethodGet, wire("HTTP/1.1 204 No Content", "X: 1"), `204 "No Content" body=none/0`},
	{"204 with length", MethodGet, wire("HTTP/1.1 204 No Content", "Content-Length: 0"), `204 "No Content" body=none/0 declared=0`},
	{"100", MethodPost, wire("HTTP/1.1 100 Continue"), `100 "Continue" body=none/0`},
	{"103", MethodGet, wire("HTTP/1.1 103 Early Hints", "Link: </a>"), `103 "Early Hints" body=none/0`},
	{"101", MethodGet, wire("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Accept: x"), `101 "Switching Protocols" body=none/0 upgrade=websocket accept=x`},
	{"101 without connection option", MethodGet, wire("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Sec-WebSocket-Accept: x"), `101 "Switching Protocols" body=none/0`},
	{"101 without protocol", MethodGet, wire("HTTP/1.1 101 Switching Protocols", "Connection: upgrade"), `101 "Switching Protocols" body=none/0`},
	{"101 with two accepts", MethodGet, wire("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Accept: x", "Sec-WebSocket-Accept: x"), `101 "Switching Protocols" body=none/0 upgrade=websocket`},
	{"101 of 1.0", MethodGet, wire("HTTP/1.0 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"), `101 "Switching Protocols" body=none/0 minor=0 close`},
	{"upgrade offered in a 426", MethodGet, wire("HTTP/1.1 426 Upgrade Required", "Upgrade: websocket", "Connection: Upgrade", "Content-Length: 0"), `426 "Upgrade Required" body=length/0 declared=0`},
}

var badResponses = func() []struct{ name, head, want string } {
	get := func(lines ...string) string { return wire(append([]string{"HTTP/1.1 200 OK"}, lines...)...) }
	long := strings.Repeat("x", 17<<10)
	return []struct{ name, head, want string }{
		{"CL and TE", get("Content-Length: 1", "Transfer-Encoding: chunked"), "502 upstream_length_and_transfer_encoding"},
		{"two equal CL", get("Content-Length: 1", "Content-Length: 1"), "502 upstream_two_content_lengths"},
		{"bad CL", get("Content-Length: 1,1"), "502 upstream_bad_content_length"},
		{"TE gzip, chunked", get("Transfer-Encoding: gzip, chunked"), "502 upstream_bad_transfer_encoding"},
		{"TE identity", get("Transfer-Encoding: identity"), "502 upstream_unknown_transfer_coding"},
		{"two TE", get("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), "502 upstream_two_transfer_encodings"},
		{"TE in 1.0", wire("HTTP/1.0 200 OK", "Transfer-Encoding: chunked"), "502 upstream_transfer_encoding_in_http10"},
		{"TE in a 204", wire("HTTP/1.1 204 No Content", "Transfer-Encoding: chunked"), "502 upstream_unexpected_transfer_encoding"},
		{"TE in a 100", wire("HTTP/1.1 100 Continue", "Transfer-Encoding: chunked"), "502 upstream_unexpected_transfer_encoding"},
		{"TE in a 101", wire("HTTP/1.1 101 x", "Transfer-Encoding: chunked"), "502 upstream_unexpected_transfer_encoding"},
		{"folded line", get("X: 1", " 2"), "502 upstream_obs_fold"},
		{"bare LF", "HTTP/1.1 200 OK\nX: 1\n\n", "502 upstream_bare_lf"},
		{"bare LF ends a field", "HTTP/1.1 200 OK\r\nX: 1\n\r\n", "502 upstream_bare_lf"},
		{"bare CR in the phrase", "HTTP/1.1 200 OK\rX: 1\r\n\r\n", "502 upstream_bare_cr"},
		{"NUL in the phrase", wire("HTTP/1.1 200 O\x00K"), "502 upstream_bad_status_line"},
		{"NUL in a value", get("X: \x00"), "502 upstream_control_character"},
		{"space before the colon", get("X : 1"), "502 upstream_space_before_colon"},
		{"empty line before it", "\r\n" + get("X: 1"), "502 upstream_bad_status_line"},
		{"HTTP/0.9", "<html>", "502 upstream_bad_status_line"},
		{"HTTP/2.0", wire("HTTP/2.0 200 OK"), "502 upstream_bad_status_line"},
		{"HTTP/1.2", wire("HTTP/1.2 200 OK"), "502 upstream_bad_status_line"},
		{"small letters", wire("http/1.1 200 OK"), "502 upstream_bad_status_line"},
		{"two digits", wire("HTTP/1.1 20 OK"), "502 upstream_bad_status_line"},
		{"four digits", wire("HTTP/1.1 2000 OK"), "502 upstream_bad_status_line"},
		{"status 099", wire("HTTP/1.1 099 x"), "502 upstream_bad_status_line"},
		{"status 600", wire("HTTP/1.1 600 x"), "502 upstream_bad_status_line"},
		{"two spaces", wire("HTTP/1.1  200 OK"), "502 upstream_bad_status_line"},
		{"phrase too long, unfinished", "HTTP/1.1 200 " + long, "502 upstream_line_too_long"},
		{"field too long", get("X: " + long), "502 upstream_line_too_long"},
		{"head too large, unfinished", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: "+long[:8<<10]+"\r\n", 4), "502 upstream_head_too_large"},
		{"too many fields", get(fields(129)...), "502 upstream_too_many_fields"},
	}
}()

func parseResponse(s string, m Method, lim *Limits) (*Response, int, *Error) {
	r := new(Response)
	n, err := r.Parse([]byte(s)[:len(s):len(s)], m, lim)
	return r, n, err
}

func TestResponseIsUnderstood(t *testing.T) {
	for _, c := range goodResponses {
		t.Run(c.name, func(t *testing.T) {
			r, n, err := parseResponse(c.head, c.method, &limits)
			if err != nil || n != len(c.head) {
				t.Fatalf("Parse(%q) = %s, want %d", c.head, outcome(n, err), len(c.head))
			}
			if got := describeResponse(r); got != c.want {
				t.Errorf("Parse(%q)\n got %s\nwant %s", c.head, got, c.want)
			}
		})
	}
}

func TestResponseIsRefused(t *testing.T) {
	for _, c := range badResponses {
		t.Run(c.name, func(t *testing.T) {
			_, n, err := parseResponse(c.head, MethodGet, &limits)
			if got := outcome(n, err); got != c.want {
				t.Errorf("Parse(%.200q) = %s, want %s", c.head, got, c.want)
			}
		})
	}
}

func TestContentLengthOfBodilessAnswerIsDropped(t *testing.T) {
	for _, c := range []struct {
		name, head string
		method     Method
		want       bool
	}{
		{"1xx", wire("HTTP/1.1 103 x", "Content-Length: 5"), MethodGet, true},
		{"204", wire("HTTP/1.1 204 x", "Content-Length: 5"), MethodGet, true},
		{"304", wire("HTTP/1.1 304 x", "Content-Length: 5"), MethodGet, false},
		{"HEAD", wire("HTTP/1.1 200 x", "Content-Length: 5"), MethodHead, false},
	} {
		r, _, err := parseResponse(c.head, c.method, &limits)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := r.Drop(0); got != c.want {
			t.Errorf("%s: Drop(Content-Length) = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestResponseLeavesWhatFollows(t *testing.T) {
	head := wire("HTTP/1.1 200 OK", "Content-Length: 2")
	r, n, err := parseResponse(head+"hi", MethodGet, &limits)
	if n != len(head) || err != nil || r.Length != 2 {
		t.Errorf("Parse = %s, length %d, want %d and 2", outcome(n, err), r.Length, len(head))
	}
}
