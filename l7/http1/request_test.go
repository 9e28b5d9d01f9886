package http1

import (
	"strings"
	"testing"
)

const webSocketKey = "dGhlIHNhbXBsZSBub25jZQ=="

// goodRequests are heads that are understood.
var goodRequests = []struct{ name, head, want string }{
	{"origin form", wire("GET /x?y=1 HTTP/1.1", "Host: a"), "GET /x?y=1 path=/x query=?y=1 host=a"},
	{"an empty line before it", "\r\n" + wire("GET / HTTP/1.1", "Host: a"), "GET / path=/ host=a"},
	{"unknown method", wire("BREW / HTTP/1.1", "Host: a"), "BREW / path=/ host=a"},
	{"method of 32 bytes", wire(strings.Repeat("M", 32)+" / HTTP/1.1", "Host: a"), strings.Repeat("M", 32) + " / path=/ host=a"},
	{"small letters are another method", wire("get / HTTP/1.1", "Host: a"), "get / path=/ host=a"},
	{"asterisk form", wire("OPTIONS * HTTP/1.1", "Host: a"), "OPTIONS * path=/ host=a"},
	{"all that is visible", wire("GET /!\"$&'()*+,-.:;<=>@[]^_`{|}~ HTTP/1.1", "Host: a"),
		"GET /!\"$&'()*+,-.:;<=>@[]^_`{|}~ path=/!%22$&'()*+,-.:;%3C=%3E@[]%5E_%60%7B%7C%7D~ host=a"},
	{"query is not looked into", wire("GET /?a=%zz&b=%&/../%00 HTTP/1.1", "Host: a"), "GET /?a=%zz&b=%&/../%00 path=/ query=?a=%zz&b=%&/../%00 host=a"},
	{"dot segments", wire("GET /a/../b?x HTTP/1.1", "Host: a"), "GET /a/../b?x path=/b query=?x rewritten host=a"},
	{"merged slashes", wire("GET /a//b HTTP/1.1", "Host: a"), "GET /a//b path=/a/b host=a"},
	{"decoded for matching", wire("GET /%61%2f%e4 HTTP/1.1", "Host: a"), "GET /%61%2f%e4 path=/a%2F%E4 host=a"},

	{"absolute form", wire("GET http://a.example/x?y HTTP/1.1", "Host: a.example"), "GET /x?y path=/x query=?y host=a.example"},
	{"absolute form without path", wire("GET http://a HTTP/1.1", "Host: a"), "GET / path=/ host=a"},
	{"absolute form, query only", wire("GET http://a?y=/ HTTP/1.1", "Host: a"), "GET /?y=/ path=/ query=?y=/ host=a"},
	{"absolute form, options of the server", wire("OPTIONS http://a HTTP/1.1", "Host: a"), "OPTIONS * path=/ host=a"},
	{"absolute form, options of the root", wire("OPTIONS http://a/ HTTP/1.1", "Host: a"), "OPTIONS / path=/ host=a"},
	{"absolute form, scheme and host in capitals", wire("GET HTTP://A.Example/ HTTP/1.1", "Host: a.example"), "GET / path=/ host=a.example authority=A.Example"},
	{"absolute form, default port", wire("GET http://a:80/ HTTP/1.1", "Host: a"), "GET / path=/ host=a authority=a:80"},
	{"absolute form, default port of https", wire("GET https://a/ HTTP/1.1", "Host: a:443"), "GET / path=/ host=a"},
	{"absolute form, dot segments", wire("GET http://a/x/../y HTTP/1.1", "Host: a"), "GET /x/../y path=/y rewritten host=a"},
	{"absolute form, 1.0 without host", wire("GET http://a:8080/ HTTP/1.0"), "GET / path=/ host=a authority=a:8080 minor=0 close"},

	{"host with capitals, port and dot", wire("GET / HTTP/1.1", "Host: WWW.Example.:8080"), "GET / path=/ host=www.example authority=WWW.Example.:8080"},
	{"host is IPv6", wire("GET / HTTP/1.1", "Host: [2001:DB8::1]:80"), "GET / path=/ host=[2001:db8::1] authority=[2001:DB8::1]:80"},
	{"empty host", wire("GET / HTTP/1.1", "Host:"), "GET / path=/ host="},
	{"1.0 without host", wire("GET / HTTP/1.0"), "GET / path=/ host= minor=0 close"},

	{"close", wire("GET / HTTP/1.1", "Host: a", "Connection: Close"), "GET / path=/ host=a close"},
	{"close in a list", wire("GET / HTTP/1.1", "Host: a", "Connection: , x ,close"), "GET / path=/ host=a close"},
	{"close in a second field", wire("GET / HTTP/1.1", "Host: a", "Connection: x", "connection: close"), "GET / path=/ host=a close"},
	{"1.0 keeps alive if asked", wire("GET / HTTP/1.0", "Connection: Keep-Alive"), "GET / path=/ host= minor=0"},
	{"close wins", wire("GET / HTTP/1.0", "Connection: keep-alive, close"), "GET / path=/ host= minor=0 close"},

	{"length", wire("POST / HTTP/1.1", "Host: a", "Content-Length: 5"), "POST / path=/ host=a body=length/5"},
	{"length with leading zeros", wire("POST / HTTP/1.1", "Host: a", "Content-Length: 010"), "POST / path=/ host=a body=length/10"},
	{"length 0 is a framing", wire("POST / HTTP/1.1", "Host: a", "Content-Length: 0"), "POST / path=/ host=a body=length/0"},
	{"largest length", wire("POST / HTTP/1.1", "Host: a", "Content-Length: 9223372036854775807"), "POST / path=/ host=a body=length/9223372036854775807"},
	{"body of a GET", wire("GET / HTTP/1.1", "Host: a", "Content-Length: 5"), "GET / path=/ host=a body=length/5"},
	{"chunked", wire("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: Chunked"), "POST / path=/ host=a body=chunked/0"},
	{"white space around the coding", wire("POST / HTTP/1.1", "Host: a", "Transfer-Encoding:\t chunked \t"), "POST / path=/ host=a body=chunked/0"},

	{"expect", wire("PUT / HTTP/1.1", "Host: a", "Content-Length: 1", "Expect: 100-Continue"), "PUT / path=/ host=a body=length/1 expect"},
	{"expect of a 1.0 client", wire("PUT / HTTP/1.0", "Content-Length: 1", "Expect: x"), "PUT / path=/ host= minor=0 body=length/1 close"},
	{"takes trailers", wire("GET / HTTP/1.1", "Host: a", "TE: gzip;q=0.5, Trailers"), "GET / path=/ host=a trailers"},
	{"takes trailers, second field", wire("GET / HTTP/1.1", "Host: a", "TE: gzip", "TE: trailers"), "GET / path=/ host=a trailers"},
	{"takes no trailers", wire("GET / HTTP/1.1", "Host: a", "TE: trailersx, gzip"), "GET / path=/ host=a"},

	{"websocket", wire("GET / HTTP/1.1", "Host: a", "Connection: keep-alive, Upgrade", "Upgrade: WebSocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: "+webSocketKey),
		"GET / path=/ host=a upgrade=WebSocket key=" + webSocketKey},
	{"websocket and an empty body", wire("GET / HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: "+webSocketKey, "Content-Length: 0"),
		"GET / path=/ host=a body=length/0 upgrade=websocket key=" + webSocketKey},
	{"websocket with a short key", wire("GET / HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j"), "GET / path=/ host=a"},
	{"websocket with a key that is not base64", wire("GET / HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j_Q=="), "GET / path=/ host=a"},
	{"websocket with two keys", wire("GET / HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: "+webSocketKey, "Sec-WebSocket-Key: "+webSocketKey), "GET / path=/ host=a"},
	{"websocket of another version", wire("GET / HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 8", "Sec-WebSocket-Key: "+webSocketKey), "GET / path=/ host=a"},
	{"websocket without connection option", wire("GET / HTTP/1.1", "Host: a", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: "+webSocketKey), "GET / path=/ host=a"},
	{"websocket by POST", wire("POST / HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: "+webSocketKey), "POST / path=/ host=a"},
	{"websocket in 1.0", wire("GET / HTTP/1.0", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: "+webSocketKey), "GET / path=/ host= minor=0 close"},
	{"other tunnel", wire("GET / HTTP/1.1", "Host: a", "Connection: upgrade", "Upgrade: spdy/3.1"), "GET / path=/ host=a upgrade=spdy/3.1"},
	{"two protocols", wire("GET / HTTP/1.1", "Host: a", "Connection: upgrade", "Upgrade: a, b"), "GET / path=/ host=a"},
	{"two upgrade fields", wire("GET / HTTP/1.1", "Host: a", "Connection: upgrade", "Upgrade: a", "Upgrade: b"), "GET / path=/ host=a"},
	{"h2c is not taken up", wire("GET / HTTP/1.1", "Host: a", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"), "GET / path=/ host=a"},
	{"h2c with a body", wire("POST / HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: h2c", "Content-Length: 3"), "POST / path=/ host=a body=length/3"},
	{"TLS is not taken up", wire("GET / HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: TLS/1.0"), "GET / path=/ host=a"},
	{"HTTP/2.0 is not taken up", wire("GET / HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: HTTP/2.0"), "GET / path=/ host=a"},
	{"tunnel by POST with a body is ignored", wire("POST / HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: tcp", "Content-Length: 3"), "POST / path=/ host=a body=length/3"},
}

func TestRequestIsUnderstood(t *testing.T) {
	for _, c := range goodRequests {
		t.Run(c.name, func(t *testing.T) {
			r, n, err := parseRequest(c.head, &limits)
			if err != nil || n != len(c.head) {
				t.Fatalf("Parse(%q) = %s, want %d", c.head, outcome(n, err), len(c.head))
			}
			if got := describe(r); got != c.want {
				t.Errorf("Parse(%q)\n got %s\nwant %s", c.head, got, c.want)
			}
		})
	}
}

func TestRequestFieldsAreKeptOrDropped(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"spelling, order and doubles are kept", []string{"x-MiXed: 1", `SOAPAction: "u"`, "X-Mixed: 2", "X-Empty:", "x: \t a  b\t "},
			`["x-MiXed=1" "SOAPAction=\"u\"" "X-Mixed=2" "X-Empty=" "x=a  b"] drop []`},
		{"fields of one hop", []string{"Keep-Alive: 1", "Proxy-Connection: x", "TE: trailers", "Trailer: x", "UPGRADE: x", "HTTP2-Settings: x", "Proxy: x", "X: 1", "Connection: close"},
			`["X=1"] drop ["Keep-Alive=1" "Proxy-Connection=x" "TE=trailers" "Trailer=x" "UPGRADE=x" "HTTP2-Settings=x" "Proxy=x" "Connection=close"]`},
		{"what Connection lists, before and after it", []string{"X-A: 1", "connection: x-a, X-B", "X-b: 2", "x-c: 3", "x-a: 4"},
			`["x-c=3"] drop ["X-A=1" "connection=x-a, X-B" "X-b=2" "x-a=4"]`},
		{"two Connection fields", []string{"X-A: 1", "X-B: 2", "Connection: x-a", "Connection: x-b"},
			`[] drop ["X-A=1" "X-B=2" "Connection=x-a" "Connection=x-b"]`},
		{"Connection removes no known field",
			[]string{"X-Forwarded-For: 1", "Authorization: 2", "Content-Length: 3", "Cookie: 4", "X-Real-IP: 5", "Connection: X-Forwarded-For, Authorization, Host, Content-Length, Cookie, x-real-ip"},
			`["X-Forwarded-For=1" "Authorization=2" "Content-Length=3" "Cookie=4" "X-Real-IP=5"] drop ["Connection=X-Forwarded-For, Authorization, Host, Content-Length, Cookie, x-real-ip"]`},
		{"credentials for a proxy pass", []string{"Proxy-Authorization: Basic x"}, `["Proxy-Authorization=Basic x"] drop []`},
		{"bytes over 0x7F pass", []string{"X: \xe4\xff\x80"}, `["X=\xe4\xff\x80"] drop []`},
		{"tab inside of a value", []string{"X: a\tb"}, `["X=a\tb"] drop []`},
	} {
		t.Run(c.name, func(t *testing.T) {
			head := wire(append([]string{"GET / HTTP/1.1"}, append(c.lines, "Host: h")...)...)
			r, n, err := parseRequest(head, &limits)
			if err != nil || n != len(head) {
				t.Fatalf("Parse(%q) = %s", head, outcome(n, err))
			}
			want := strings.Replace(c.want, `] drop`, ` "Host=h"] drop`, 1)
			want = strings.Replace(want, `[ `, `[`, 1)
			if got := fieldsOf(&r.Head); got != want {
				t.Errorf("fields of %q\n got %s\nwant %s", head, got, want)
			}
		})
	}
}

func TestHeadFindsFields(t *testing.T) {
	head := wire("GET / HTTP/1.1", "host: a", "COOKIE: b", "X_Y: 1", "Cookie: c", "Server:", "x: 2")
	r, _, err := parseRequest(head, &limits)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(r.Get(FieldCookie)); got != "b" {
		t.Errorf("Get(Cookie) = %q, want the first value %q", got, "b")
	}
	if got := r.Get(FieldServer); got == nil || len(got) != 0 {
		t.Errorf("Get(Server) = %v, want an empty value", got)
	}
	if got := r.Get(FieldDate); got != nil {
		t.Errorf("Get(Date) = %q, want nil", got)
	}
	for i, want := range []FieldID{FieldHost, FieldCookie, FieldNone, FieldCookie, FieldServer, FieldNone} {
		if got := r.ID(i); got != want {
			t.Errorf("ID(%d) = %q, want %q", i, got, want)
		}
		if got, want := r.Underscore(i), i == 2; got != want {
			t.Errorf("Underscore(%d) = %v, want %v", i, got, want)
		}
	}
}

func TestEveryKnownFieldIsLookedUpInAnySpelling(t *testing.T) {
	for id := FieldNone + 1; id < fieldIDs; id++ {
		name := id.String()
		if name == "" {
			t.Fatalf("field %d has no name", id)
		}
		for _, s := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			if got := lookup([]byte(s)); got != id {
				t.Errorf("lookup(%q) = %q, want %q", s, got, id)
			}
		}
		for _, s := range []string{name + "x", "x" + name, name[1:], strings.ReplaceAll(name, "-", "_") + "_"} {
			if got := lookup([]byte(s)); got == id {
				t.Errorf("lookup(%q) = %q", s, got)
			}
		}
	}
}
