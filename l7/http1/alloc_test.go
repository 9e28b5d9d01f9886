package http1

import "testing"

// browserRequest is what a browser sends: 10 fields.
var browserRequest = wire(
	"GET /shop/items/4711?sort=price HTTP/1.1",
	"Host: www.shop.example",
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
	"Accept: text/html,*/*;q=0.8",
	"Accept-Language: en",
	"Accept-Encoding: gzip, br",
	"Referer: https://www.shop.example/",
	"Connection: keep-alive",
	"Cookie: session=0123456789abcdef",
	"Upgrade-Insecure-Requests: 1",
	"Priority: u=0, i",
)

var serverResponse = wire(
	"HTTP/1.1 200 OK",
	"Server: nginx/1.26.3",
	"Date: Mon, 30 Nov 2026 12:00:00 GMT",
	"Content-Type: text/plain",
	"Content-Length: 13",
	"Connection: keep-alive",
	`ETag: "6560c0de-d"`,
	"Accept-Ranges: bytes",
)

const chunkedSample = "a\r\n0123456789\r\n5;x=y\r\n01234\r\n1\r\nx\r\n0\r\nX-Sum: 9\r\nHost: x\r\n\r\n"

func TestNothingAllocates(t *testing.T) {
	var request Request
	var answer Response
	var body Body
	heavy := []byte(wire("GET HTTP://WWW.Example:80/a/../b%2fc?x HTTP/1.1", "Host: www.EXAMPLE", "Connection: x-a, x-b", "X-A: 1", "TE: trailers"))
	literal := []byte(wire("GET / HTTP/1.1", "Host: [2001:DB8::1]:80"))
	bad := []byte(wire("GET / HTTP/1.1", "Host: a{b"))
	browser, server := []byte(browserRequest), []byte(serverResponse)
	chunks := make([]byte, len(chunkedSample))
	out := make([]byte, 0, 256)
	good := func(n int, err *Error) {
		if n == 0 || err != nil {
			t.Fatal(outcome(n, err))
		}
	}
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"request", func() { good(request.Parse(browser, &limits)) }},
		{"request with everything", func() { good(request.Parse(heavy, &limits)) }},
		{"request for an IPv6 host", func() { good(request.Parse(literal, &limits)) }},
		{"refused request", func() {
			if _, err := request.Parse(bad, &limits); err == nil {
				t.Fatal("not refused")
			}
		}},
		{"head end", func() { good(HeadEnd(browser, 0)) }},
		{"response", func() { good(answer.Parse(server, MethodGet, &limits)) }},
		{"chunked body", func() {
			copy(chunks, chunkedSample)
			body.Init(BodyChunked, 0)
			if _, n, err := body.Decode(chunks, &limits); !body.Done() {
				t.Fatal(outcome(n, err))
			}
		}},
		{"writers", func() {
			out = AppendStatusLine(out[:0], 200, browser[:2])
			out = AppendField(out, browser[:2], browser[:4])
			out = AppendUint(out, 500)
			out = WebSocketAccept(out, []byte(webSocketKey))
			PutChunkHead(out, 77)
		}},
	} {
		if got := testing.AllocsPerRun(100, c.run); got != 0 {
			t.Errorf("%s: %v allocations, want 0", c.name, got)
		}
	}
}
