package http1

import (
	"fmt"
	"strings"
	"testing"
)

// badRequests are heads that are refused. get and post have what a head needs
// besides the fault.
var badRequests = func() []struct{ name, head, want string } {
	get := func(lines ...string) string {
		return wire(append([]string{"GET / HTTP/1.1", "Host: a"}, lines...)...)
	}
	target := func(s string) string { return wire("GET "+s+" HTTP/1.1", "Host: a") }
	host := func(s string) string { return wire("GET / HTTP/1.1", "Host: "+s) }
	long := strings.Repeat("x", 17<<10)
	return []struct{ name, head, want string }{
		// framing
		{"CL.TE", get("Content-Length: 6", "Transfer-Encoding: chunked"), "400 length_and_transfer_encoding"},
		{"TE.CL", get("Transfer-Encoding: chunked", "Content-Length: 6"), "400 length_and_transfer_encoding"},
		{"CL.TE with an unknown coding", get("Transfer-Encoding: x", "Content-Length: 6"), "400 length_and_transfer_encoding"},
		{"two TE", get("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), "400 two_transfer_encodings"},
		{"two TE, one identity", get("Transfer-Encoding: chunked", "Transfer-encoding: identity"), "400 two_transfer_encodings"},
		{"TE chunked, chunked", get("Transfer-Encoding: chunked, chunked"), "400 bad_transfer_encoding"},
		{"TE gzip, chunked", get("Transfer-Encoding: gzip, chunked"), "400 bad_transfer_encoding"},
		{"TE chunked, gzip", get("Transfer-Encoding: chunked, gzip"), "400 bad_transfer_encoding"},
		{"TE ,chunked", get("Transfer-Encoding: ,chunked"), "400 bad_transfer_encoding"},
		{"TE chunked,", get("Transfer-Encoding: chunked,"), "400 bad_transfer_encoding"},
		{"TE quoted", get(`Transfer-Encoding: "chunked"`), "400 bad_transfer_encoding"},
		{"TE with parameter", get("Transfer-Encoding: chunked;q=1"), "400 bad_transfer_encoding"},
		{"TE empty", get("Transfer-Encoding:"), "400 bad_transfer_encoding"},
		{"TE xchunked", get("Transfer-Encoding: xchunked"), "501 unknown_transfer_coding"},
		{"TE gzip", get("Transfer-Encoding: gzip"), "501 unknown_transfer_coding"},
		{"TE identity", get("Transfer-Encoding: identity"), "501 unknown_transfer_coding"},
		{"TE after VT", get("Transfer-Encoding:\vchunked"), "400 control_character"},
		{"TE before FF", get("Transfer-Encoding: chunked\f"), "400 control_character"},
		{"TE after 0xA0", get("Transfer-Encoding: \xa0chunked"), "400 bad_transfer_encoding"},
		{"TE before 0x85", get("Transfer-Encoding: chunked\x85"), "400 bad_transfer_encoding"},
		{"TE in two words", get("Transfer-Encoding: chun ked"), "400 bad_transfer_encoding"},
		{"TE with an underscore", get("Transfer_Encoding: chunked"), "400 transfer_encoding_alias"},
		{"TE in 1.0", wire("POST / HTTP/1.0", "Transfer-Encoding: chunked"), "400 transfer_encoding_in_http10"},
		{"CL +1", get("Content-Length: +1"), "400 bad_content_length"},
		{"CL -1", get("Content-Length: -1"), "400 bad_content_length"},
		{"CL 0x10", get("Content-Length: 0x10"), "400 bad_content_length"},
		{"CL 1_0", get("Content-Length: 1_0"), "400 bad_content_length"},
		{"CL empty", get("Content-Length: "), "400 bad_content_length"},
		{"CL 1Z", get("Content-Length: 1Z"), "400 bad_content_length"},
		{"CL 1, 1", get("Content-Length: 1, 1"), "400 bad_content_length"},
		{"CL 1 1", get("Content-Length: 1 1"), "400 bad_content_length"},
		{"CL 1.0", get("Content-Length: 1.0"), "400 bad_content_length"},
		{"CL 2^63", get("Content-Length: 9223372036854775808"), "400 bad_content_length"},
		{"CL 2^64", get("Content-Length: 18446744073709551616"), "400 bad_content_length"},
		{"CL 2^64+5", get("Content-Length: 18446744073709551621"), "400 bad_content_length"},
		{"two equal CL", get("Content-Length: 1", "Content-Length: 1"), "400 two_content_lengths"},
		{"two different CL", get("Content-Length: 1", "content-length: 2"), "400 two_content_lengths"},

		// lines
		{"bare LF ends the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", "400 bare_lf"},
		{"bare LF ends a field", "GET / HTTP/1.1\r\nHost: a\nX: 1\r\n\r\n", "400 bare_lf"},
		{"bare LF in a name", get("X\nY: 1"), "400 bare_lf"},
		{"bare LF ends the head", "GET / HTTP/1.1\r\nHost: a\r\n\n", "400 bare_lf"},
		{"bare LF before the head", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400 bare_lf"},
		{"bare CR in the request line", "GET / HTTP/1.1\rHost: a\r\n\r\n", "400 bare_cr"},
		{"bare CR in a value", get("X: a\rY: b"), "400 bare_cr"},
		{"CR CR LF", get("X: a\r"), "400 bare_cr"},
		{"bare CR ends the head", "GET / HTTP/1.1\r\nHost: a\r\n\rX\r\n", "400 bare_cr"},
		{"bare CR before the head", "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400 bare_cr"},
		{"two empty lines before the head", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400 empty_lines"},
		{"folded line", get("X: a", " b"), "400 obs_fold"},
		{"folded by a tab", get("X: a", "\tb: c"), "400 obs_fold"},
		{"first field folded", wire("GET / HTTP/1.1", " Host: a"), "400 obs_fold"},
		{"name over two lines", get("X", "Y: 1"), "400 no_colon"},
		{"space before the colon", get("Transfer-Encoding : chunked"), "400 space_before_colon"},
		{"tab before the colon", get("Host\t: a"), "400 space_before_colon"},
		{"empty name", get(": x"), "400 empty_field_name"},
		{"no colon but a space", get("Content-Length 10"), "400 space_before_colon"},
		{"no colon", get("Content-Length"), "400 no_colon"},
		{"NUL in a name", get("X\x00: 1"), "400 bad_field_name"},
		{"0x80 in a name", get("X\x80: 1"), "400 bad_field_name"},
		{"DEL in a name", get("X\x7f: 1"), "400 bad_field_name"},
		{"bracket in a name", get("X[]: 1"), "400 bad_field_name"},
		{"NUL in a value", get("X: a\x00b"), "400 control_character"},
		{"0x01 in a value", get("X: \x01"), "400 control_character"},
		{"0x1F in a value", get("X: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\x1f"), "400 control_character"},
		{"DEL in a value", get("X: 1\x7f"), "400 control_character"},

		// request line
		{"two words of target", target("/a b"), "400 bad_version"},
		{"two spaces after the method", wire("GET  / HTTP/1.1", "Host: a"), "400 bad_target"},
		{"two spaces before the version", wire("GET /  HTTP/1.1", "Host: a"), "400 bad_version"},
		{"tab after the method", wire("GET\t/ HTTP/1.1", "Host: a"), "400 bad_method"},
		{"space after the version", wire("GET / HTTP/1.1 ", "Host: a"), "400 bad_version"},
		{"space before the method", wire(" GET / HTTP/1.1", "Host: a"), "400 bad_method"},
		{"method with a delimiter", wire("GE(T / HTTP/1.1", "Host: a"), "400 bad_method"},
		{"method too long", wire(strings.Repeat("M", 33)+" / HTTP/1.1", "Host: a"), "400 bad_method"},
		{"TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400 bad_method"},
		{"HTTP/1.10", wire("GET / HTTP/1.10", "Host: a"), "400 bad_version"},
		{"HTTP/1.32", wire("GET / HTTP/1.32", "Host: a"), "400 bad_version"},
		{"HTTP/01.1", wire("GET / HTTP/01.1", "Host: a"), "400 bad_version"},
		{"HTTP/1,1", wire("GET / HTTP/1,1", "Host: a"), "400 bad_version"},
		{"http/1.1", wire("GET / http/1.1", "Host: a"), "400 bad_version"},
		{"HTTP/2.0", wire("GET / HTTP/2.0", "Host: a"), "505 unsupported_version"},
		{"HTTP/1.2", wire("GET / HTTP/1.2", "Host: a"), "505 unsupported_version"},
		{"HTTP/0.9", wire("GET / HTTP/0.9", "Host: a"), "505 unsupported_version"},
		{"no version", "GET /\r\n", "400 http09"},
		{"no target", "GET\r\n", "400 bad_method"},
		{"preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 unsupported_version"},
		{"CONNECT", wire("CONNECT a:443 HTTP/1.1", "Host: a:443"), "405 connect"},
		{"CONNECT in origin form", wire("CONNECT / HTTP/1.1", "Host: a"), "405 connect"},
		{"asterisk with GET", target("*"), "400 bad_target"},
		{"asterisk and more", wire("OPTIONS */x HTTP/1.1", "Host: a"), "400 bad_target"},
		{"authority form", target("a:80"), "400 bad_target"},
		{"no leading slash", target("a/b"), "400 bad_target"},
		{"query only", target("?a"), "400 bad_target"},
		{"fragment", target("/a#b"), "400 fragment"},
		{"fragment in the query", target("/a?b#c"), "400 fragment"},
		{"fragment in an absolute target", target("http://a/#b"), "400 fragment"},
		{"0x80 in the path", target("/\x80"), "400 bad_target"},
		{"0x80 in the query", target("/?\x80"), "400 bad_target"},
		{"NUL in the target", target("/\x00"), "400 bad_target"},
		{"tab in the target", target("/a\tb"), "400 bad_target"},
		{"DEL in the target", target("/\x7f"), "400 bad_target"},
		{"bare LF in the target", target("/a\nb"), "400 bare_lf"},
		{"bad escape", target("/%zz"), "400 bad_escape"},
		{"cut escape", target("/%4"), "400 bad_escape"},
		{"encoded NUL", target("/a%00b"), "400 bad_escape"},
		{"path above the root", target("/a/../../b"), "400 path_above_root"},
		{"path above the root, encoded", target("/%2e%2E/b"), "400 path_above_root"},
		{"parent hidden by an encoded slash", target("/a/..%2fb"), "400 hidden_dot_segment"},
		{"parent hidden by a backslash", target(`/a/..\b`), "400 hidden_dot_segment"},

		// absolute form
		{"absolute form, other host", wire("GET http://a/ HTTP/1.1", "Host: b"), "400 host_mismatch"},
		{"absolute form, other port", wire("GET http://a:81/ HTTP/1.1", "Host: a"), "400 host_mismatch"},
		{"absolute form, port of another scheme", wire("GET http://a:443/ HTTP/1.1", "Host: a"), "400 host_mismatch"},
		{"absolute form, empty host", wire("GET http://a/ HTTP/1.1", "Host:"), "400 host_mismatch"},
		{"absolute form, no host field", wire("GET http://a/ HTTP/1.1"), "400 no_host"},
		{"absolute form, two host fields", wire("GET http://a/ HTTP/1.1", "Host: a", "Host: a"), "400 two_hosts"},
		{"absolute form, userinfo", target("http://u@a/"), "400 bad_host"},
		{"absolute form, no host", target("http:///x"), "400 bad_host"},
		{"absolute form, backslash", target(`http://a\b/`), "400 bad_host"},
		{"absolute form, other scheme", target("ftp://a/"), "400 bad_target"},
		{"absolute form, one slash", target("http:/a/"), "400 bad_target"},
		{"absolute form, above the root", target("http://a/../b"), "400 path_above_root"},

		// Host
		{"no host", wire("GET / HTTP/1.1"), "400 no_host"},
		{"no host, though an alias", wire("GET / HTTP/1.1", "X-Forwarded-Host: a"), "400 no_host"},
		{"two equal hosts", wire("GET / HTTP/1.1", "Host: a", "Host: a"), "400 two_hosts"},
		{"two hosts in 1.0", wire("GET / HTTP/1.0", "Host: a", "Host: b"), "400 two_hosts"},
		{"host a{b", host("a{b"), "400 bad_host"},
		{"host a@b", host("a@b"), "400 bad_host"},
		{"host 0xFF", host("a\xff"), "400 bad_host"},
		{"host a b", host("a b"), "400 bad_host"},
		{"host a/b", host("a/b"), "400 bad_host"},
		{"host a,b is a name; a, b is none", host("a, b"), "400 bad_host"},
		{"host %61", host("%61"), "400 bad_host"},

		// Expect, Upgrade, Connection
		{"unknown expectation", get("Expect: x"), "417 unknown_expectation"},
		{"hidden expectation", get("Expect: y 100-continue"), "417 unknown_expectation"},
		{"list of expectations", get("Expect: 100-continue, x"), "417 unknown_expectation"},
		{"empty expectation", get("Expect:"), "417 unknown_expectation"},
		{"two expectations", get("Expect: 100-continue", "Expect: 100-continue"), "417 unknown_expectation"},
		{"websocket with a body", get("Connection: upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: "+webSocketKey, "Content-Length: 1"), "400 upgrade_with_body"},
		{"websocket with chunks", get("Connection: upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: "+webSocketKey, "Transfer-Encoding: chunked"), "400 upgrade_with_body"},
		{"websocket by POST with a body", wire("POST / HTTP/1.1", "Host: a", "Connection: upgrade", "Upgrade: websocket", "Content-Length: 1"), "400 upgrade_with_body"},
		{"other tunnel with a body", get("Connection: upgrade", "Upgrade: x", "Content-Length: 1"), "400 upgrade_with_body"},
		{"too many connection options", get("Connection: " + strings.Repeat("x,", 65)), "400 too_many_connection_options"},

		// limits
		{"target too long", target("/" + long), "414 target_too_long"},
		{"target too long, unfinished", "GET /" + long, "414 target_too_long"},
		{"target of 33 KiB, unfinished", "GET /" + long + long, "414 target_too_long"},
		{"absolute target too long, unfinished", "GET http://" + long, "414 target_too_long"},
		{"value too long", get("X: " + long), "431 line_too_long"},
		{"value too long, unfinished", "GET / HTTP/1.1\r\nX: " + long, "431 line_too_long"},
		{"name too long, unfinished", "GET / HTTP/1.1\r\n" + long, "431 line_too_long"},
		{"head too large", get("X: "+long[:15<<10], "Y: "+long[:15<<10], "Z: "+long[:3<<10]), "431 head_too_large"},
		{"head too large, unfinished", "GET / HTTP/1.1\r\nX: " + long[:15<<10] + "\r\nY: " + long[:15<<10] + "\r\nZ: " + long[:3<<10], "431 head_too_large"},
		{"too many fields", get(fields(128)...), "431 too_many_fields"},
	}
}()

// fields returns n field lines.
func fields(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("X-%d: 1", i))
	}
	return list
}

func TestRequestIsRefused(t *testing.T) {
	for _, c := range badRequests {
		t.Run(c.name, func(t *testing.T) {
			_, n, err := parseRequest(c.head, &limits)
			if got := outcome(n, err); got != c.want {
				t.Errorf("Parse(%.200q) = %s, want %s", c.head, got, c.want)
			}
		})
	}
}

// Every control character is refused at every place of a head where it isn't
// part of a line end.
func TestControlCharactersAreRefusedEverywhere(t *testing.T) {
	head := wire("GET /p?q HTTP/1.1", "Host: a", "X-Name: a long enough value", "Y: z")
	for c := range byte(0x80) {
		if c >= 0x20 && c != 0x7F {
			continue
		}
		for i := range len(head) - 1 {
			if c == '\t' && (i > strings.Index(head, "Host:")+4) || c == head[i] {
				continue // white space in a value, or no change
			}
			s := head[:i] + string(c) + head[i+1:]
			if _, n, err := parseRequest(s, &limits); err == nil {
				t.Errorf("Parse(%q) = %d, want a refusal of 0x%02x at %d", s, n, c, i)
			}
		}
	}
}

func TestLimitsAreExact(t *testing.T) {
	fit := func(n int) string { // a head of n bytes
		const frame = "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n"
		return strings.Replace(frame, "X: ", "X: "+strings.Repeat("v", n-len(frame)), 1)
	}
	line := func(n int) string { return wire("GET / HTTP/1.1", "Host: a", "X: "+strings.Repeat("v", n-3)) }
	first := func(n int) string {
		return wire("GET /"+strings.Repeat("v", n-len("GET / HTTP/1.1"))+" HTTP/1.1", "Host: a")
	}
	many := func(n int) string {
		return wire(append([]string{"GET / HTTP/1.1", "Host: a"}, fields(n-1)...)...)
	}
	for _, c := range []struct {
		name string
		lim  Limits
		make func(int) string
		max  int
		want string
	}{
		{"head", Limits{100, 1000, 10}, fit, 100, "431 head_too_large"},
		{"head within its first line", Limits{40, 1000, 10}, func(n int) string {
			if n == 40 {
				return fit(n)
			}
			return "GET /" + strings.Repeat("v", n-len("GET /"))
		}, 40, "414 target_too_long"},
		{"line", Limits{1000, 50, 10}, line, 50, "431 line_too_long"},
		{"request line", Limits{1000, 50, 10}, first, 50, "414 target_too_long"},
		{"fields", Limits{1000, 50, 10}, many, 10, "431 too_many_fields"},
		{"fields of a Head", Limits{10000, 50, 1000}, many, MaxFields, "431 too_many_fields"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.make(c.max)
			if _, n, err := parseRequest(s, &c.lim); n != len(s) {
				t.Errorf("%d: Parse = %s, want %d", c.max, outcome(n, err), len(s))
			}
			if _, n, err := parseRequest(c.make(c.max+1), &c.lim); outcome(n, err) != c.want {
				t.Errorf("%d: Parse = %s, want %s", c.max+1, outcome(n, err), c.want)
			}
		})
	}
}

func TestReasonsAreUniqueAndKnown(t *testing.T) {
	seen := map[string]bool{}
	for _, reason := range Reasons() {
		if reason == "" || seen[reason] {
			t.Errorf("reason %q is empty or given twice", reason)
		}
		seen[reason] = true
	}
	for _, c := range badRequests {
		if reason := strings.Fields(c.want)[1]; !seen[reason] {
			t.Errorf("reason %q is not among Reasons()", reason)
		}
	}
}
