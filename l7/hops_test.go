package l7

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestARequestThatGoesRoundEnds: the endpoint of the route is the proxy itself.
func TestARequestThatGoesRoundEnds(t *testing.T) {
	b := serve(t, Config{}, nil)
	b.endpoints(b.server.Addresses()[0].String())
	w := b.connect(t)
	if r, _ := w.get(); r.StatusCode != 508 {
		t.Errorf("answer %d, want 508", r.StatusCode)
	}
	if n := b.server.Stats().Workers[0].Requests; n != hopsMax+1 {
		t.Errorf("%d requests, want %d", n, hopsMax+1)
	}
}

// TestHopsAreCounted: whatever the client says of them, in any spelling, the endpoint
// gets one line.
func TestHopsAreCounted(t *testing.T) {
	e := newEndpoint(t, func(w *wire) {
		for {
			head, ok := w.head()
			if !ok {
				return
			}
			var got []string
			for line := range strings.Lines(head) {
				if strings.HasPrefix(strings.ToLower(line), "x-weir-hops:") {
					got = append(got, strings.TrimSpace(line))
				}
			}
			text := strings.Join(got, "|")
			fmt.Fprintf(w.TCPConn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		}
	})
	w := serve(t, Config{}, nil, e.addr).connect(t)
	for sent, want := range map[string]string{
		"":                                     "X-Weir-Hops: 1",
		"x-weir-hops: 1\r\n":                   "X-Weir-Hops: 2",
		"X-WEIR-HOPS: 3\r\n":                   "X-Weir-Hops: 4",
		"X-Weir-Hops: 0\r\nX-Weir-Hops: 2\r\n": "X-Weir-Hops: 3",
		"X-Weir-Hops: many\r\n":                "X-Weir-Hops: 1",
		"X-Weir-Hops: 10\r\n":                  "X-Weir-Hops: 1",
		"X-Weir-Hops: 4\r\n":                   "508",
		"X-Weir-Hops: 9\r\n":                   "508",
		"Connection: X-Weir-Hops\r\nX-Weir-Hops: 3\r\n": "X-Weir-Hops: 4",
	} {
		io.WriteString(w.TCPConn, "GET / HTTP/1.1\r\nHost: a.example\r\n"+sent+"\r\n")
		r, text := w.answer("GET")
		if r.StatusCode != 200 {
			text = fmt.Sprint(r.StatusCode)
		}
		if text != want {
			t.Errorf("%q: the endpoint got %q, want %q", sent, text, want)
		}
	}
}
