package http1

import (
	"strings"
	"testing"
)

// A head that comes in pieces gives what it gives whole: every beginning of it
// is either incomplete or has the result of the whole.
func checkBeginnings(t *testing.T, s string, parse func(string) (int, *Error)) {
	t.Helper()
	n, err := parse(s)
	whole := outcome(n, err)
	step := 1 + len(s)/500
	for i := 0; i < len(s); i += step {
		k, err := parse(s[:i])
		if got := outcome(k, err); got != "0" && got != whole {
			t.Fatalf("%.200q: the first %d bytes give %s, all give %s", s, i, got, whole)
		}
		if n > 0 && i < n && k != 0 {
			t.Fatalf("%.200q: %d bytes give %d, but the head has %d", s, i, k, n)
		}
	}
}

func TestRequestIsTheSameInEverySplit(t *testing.T) {
	parse := func(s string) (int, *Error) {
		_, n, err := parseRequest(s, &limits)
		return n, err
	}
	for _, c := range goodRequests {
		checkBeginnings(t, c.head+"behind", parse)
	}
	for _, c := range badRequests {
		checkBeginnings(t, c.head, parse)
	}
}

func TestResponseIsTheSameInEverySplit(t *testing.T) {
	for _, c := range goodResponses {
		checkBeginnings(t, c.head+"behind", func(s string) (int, *Error) {
			_, n, err := parseResponse(s, c.method, &limits)
			return n, err
		})
	}
	for _, c := range badResponses {
		checkBeginnings(t, c.head, func(s string) (int, *Error) {
			_, n, err := parseResponse(s, MethodGet, &limits)
			return n, err
		})
	}
}

func TestBadBytesAreRefusedAtOnce(t *testing.T) {
	for _, c := range []struct{ name, beginning, want string }{
		{"TLS", "\x16", "400 bad_method"},
		{"method", "G@", "400 bad_method"},
		{"CONNECT", "CONNECT ", "405 connect"},
		{"target", "GET /\x80", "400 bad_target"},
		{"version", "GET / HTTQ", "400 bad_version"},
		{"line end", "GET / HTTP/1.1\n", "400 bare_lf"},
		{"escape", "GET /%zz HTTP/1.1\r\n", "400 bad_escape"},
		{"name", "GET / HTTP/1.1\r\nHost: a\r\nX\x80", "400 bad_field_name"},
		{"value", "GET / HTTP/1.1\r\nHost: a\r\nX: \x00", "400 control_character"},
		{"fold", "GET / HTTP/1.1\r\nHost: a\r\n ", "400 obs_fold"},
	} {
		_, n, err := parseRequest(c.beginning, &limits)
		if got := outcome(n, err); got != c.want {
			t.Errorf("%s: Parse(%q) = %s, want %s", c.name, c.beginning, got, c.want)
		}
		_, n, err = parseRequest(c.beginning[:len(c.beginning)-1], &limits)
		if got := outcome(n, err); got != "0" {
			t.Errorf("%s: Parse(%q) = %s, want 0", c.name, c.beginning[:len(c.beginning)-1], got)
		}
	}
}

func TestHeadEnd(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     string
	}{
		{"whole", "GET / HTTP/1.1\r\nHost: a\r\n\r\nmore\r\n\r\n", "27"},
		{"without field", "GET / HTTP/1.1\r\n\r\n", "18"},
		{"empty line before it", "\r\nGET / HTTP/1.1\r\n\r\n", "20"},
		{"unfinished", "GET / HTTP/1.1\r\nHost: a\r\n\r", "0"},
		{"empty", "", "0"},
		{"bare LF", "GET / HTTP/1.1\n", "400 bare_lf"},
		{"bare LF at first", "\n", "400 bare_lf"},
		{"LF LF", "GET / HTTP/1.1\r\n\n", "400 bare_lf"},
		{"bare LF behind the head", "GET / HTTP/1.1\r\n\r\n\n", "18"},
	} {
		for from := 0; from <= len(c.in); from++ {
			// Whoever looked at the first bytes before would have stopped at the end.
			if n, err := HeadEnd([]byte(c.in[:from]), 0); n != 0 || err != nil {
				if got := outcome(n, err); got != c.want {
					t.Errorf("%s: HeadEnd(%q, 0) = %s, want %s", c.name, c.in[:from], got, c.want)
				}
				break
			}
			n, err := HeadEnd([]byte(c.in), from)
			if got := outcome(n, err); got != c.want {
				t.Errorf("%s: HeadEnd(%q, %d) = %s, want %s", c.name, c.in, from, got, c.want)
			}
		}
	}
}

// A request that is used again remembers nothing of the one before.
func TestParseForgetsTheHeadBefore(t *testing.T) {
	full := wire("PUT http://A.example:80/x/../y?q HTTP/1.1", "Host: a.example", "Content-Length: 3", "Expect: 100-continue",
		"TE: trailers", "Connection: close, x-y", "X-Y: 1", "Cookie: c", "Cookie: d")
	bare := "GET / HTTP/1.0\r\n\r\n"
	webSocket := wire("GET /chat HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: "+webSocketKey)
	twoHosts := wire("GET / HTTP/1.1", "Host: a", "Host: b")
	heads := []string{full, webSocket, bare, twoHosts, "GET /%zz HTTP/1.1\r\n"}
	for _, before := range heads {
		for _, after := range heads {
			var used Request
			used.Parse([]byte(before), &limits)
			fresh, n, err := parseRequest(after, &limits)
			m, errUsed := used.Parse([]byte(after), &limits)
			if n != m || err != errUsed {
				t.Fatalf("Parse(%q) = %s after %q, %s alone", after, outcome(m, errUsed), before, outcome(n, err))
			}
			if err != nil {
				continue
			}
			if got, want := describe(&used)+fieldsOf(&used.Head), describe(fresh)+fieldsOf(&fresh.Head); got != want {
				t.Errorf("after %q\n got %s\nwant %s", before, got, want)
			}
			for id := FieldNone + 1; id < fieldIDs; id++ {
				if got, want := used.Get(id), fresh.Get(id); string(got) != string(want) || (got == nil) != (want == nil) {
					t.Errorf("after %q: Get(%s) = %q, want %q", before, id, got, want)
				}
			}
		}
	}
}

func TestParseForgetsTheResponseBefore(t *testing.T) {
	upgrade := wire("HTTP/1.1 101 x", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Accept: x")
	twice := wire("HTTP/1.1 200 OK", "Content-Length: 5", "Content-Length: 5")
	heads := []string{upgrade, twice, wire("HTTP/1.0 200"), wire("HTTP/1.1 200 OK", "Content-Length: 5")}
	for _, before := range heads {
		for _, after := range heads {
			var used Response
			used.Parse([]byte(before), MethodGet, &limits)
			m, errUsed := used.Parse([]byte(after), MethodGet, &limits)
			fresh, n, err := parseResponse(after, MethodGet, &limits)
			if n != m || err != errUsed {
				t.Fatalf("Parse(%q) = %s after %q, %s alone", after, outcome(m, errUsed), before, outcome(n, err))
			}
			if err != nil {
				continue
			}
			if got, want := describeResponse(&used)+fieldsOf(&used.Head), describeResponse(fresh)+fieldsOf(&fresh.Head); got != want {
				t.Errorf("after %q\n got %s\nwant %s", before, got, want)
			}
		}
	}
}

func TestLongestHeadsWithinTheLimits(t *testing.T) {
	s := wire("GET /"+strings.Repeat("x", 15<<10)+" HTTP/1.1", "Host: a", "X: "+strings.Repeat("y", 15<<10))
	if _, n, err := parseRequest(s, &limits); n != len(s) {
		t.Errorf("Parse = %s, want %d", outcome(n, err), len(s))
	}
}
