package cases

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirproxy/weir/tests/rig"
)

func TestCB51LimitsOfTheHead(t *testing.T) {
	w := plain(t)
	field := func(kib int) string { return "Cookie: " + strings.Repeat("c", kib<<10) }
	for _, c := range []struct {
		name   string
		target string
		fields []string
		want   int
	}{
		{"field of 15 KiB", "/", []string{field(15)}, 200},
		{"field of 17 KiB", "/", []string{field(17)}, 431},
		{"fields of 28 KiB together", "/", []string{field(14), field(14)}, 200},
		{"fields of 36 KiB together", "/", []string{field(12), field(12), field(12)}, 431},
		{"target of 15 KiB", "/" + strings.Repeat("t", 15<<10), nil, 200},
		{"target of 33 KiB", "/" + strings.Repeat("t", 33<<10), nil, 414},
		{"120 fields", "/", many(118), 200},
		{"129 fields", "/", many(128), 431},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.pods["a"].Forget()
			conn := rig.Dial(t, w.Addr)
			if err := conn.TrySend(rig.Get("a.example.test", c.target, c.fields...)); err != nil && c.want == 200 {
				t.Fatal(err)
			}
			if got := conn.Read("GET").Status; got != c.want {
				t.Errorf("status %d, want %d", got, c.want)
			}
			if c.want != 200 {
				conn.ExpectClosed(rig.Deadline)
				untouched(t, w.pods["a"])
			}
		})
	}
	w.expect("a.example.test", "/", "a")
}

func many(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("X-F%d: 1", i)
	}
	return list
}

func TestCB52BigHeadsFromTheBackend(t *testing.T) {
	w := plain(t)
	w.pods["a"].Handle(func(x *rig.Exchange) {
		cookie := "Set-Cookie: k=" + strings.Repeat("v", 8<<10)
		switch x.Line() {
		case "GET /big":
			x.Answer(200, "big", cookie, cookie, cookie, cookie, cookie, cookie)
		case "GET /huge":
			x.Answer(200, "huge", cookie, cookie, cookie, cookie, cookie, cookie, cookie, cookie, cookie)
		default:
			x.Answer(200, "a")
		}
	})
	m := w.get("a.example.test", "/big")
	if n := len(m.Values("Set-Cookie")); m.Status != 200 || n != 6 {
		t.Errorf("48 KiB of fields -> %d with %d Set-Cookie, want 200 with 6", m.Status, n)
	}
	w.expect("a.example.test", "/huge", "502")
	w.expect("a.example.test", "/", "a")
}

func TestCB53TrailersOfARequest(t *testing.T) {
	w := plain(t)
	c := rig.Dial(t, w.Addr)
	c.Send("POST / HTTP/1.1\r\nHost: a.example.test\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n" +
		"2\r\nhi\r\n0\r\nX-Sum: 9\r\nContent-Length: 7\r\nAuthorization: x\r\nHost: y\r\nTransfer-Encoding: chunked\r\n\r\n")
	if got := outcome(c.Read("POST")); got != "a" {
		t.Fatalf("POST -> %s, want a", got)
	}
	r := w.pods["a"].Last(t)
	if string(r.Body) != "hi" || len(r.Trailers) != 1 || r.Trailers[0] != (rig.Field{Name: "X-Sum", Value: "9"}) {
		t.Errorf("backend saw body %q, trailers %v, want hi and X-Sum: 9 alone", r.Body, r.Trailers)
	}
	if r.Has("X-Sum") || r.Has("Authorization") {
		t.Errorf("a trailer was merged into the fields: %v", r.Fields)
	}
}

func TestCB53TrailersOfAnAnswer(t *testing.T) {
	w := plain(t)
	w.pods["a"].Handle(func(x *rig.Exchange) {
		x.Write(rig.Lines("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Trailer: X-Sum") + "2\r\nhi\r\n0\r\nX-Sum: 9\r\nSet-Cookie: a=b\r\n\r\n")
	})
	m := w.get("a.example.test", "/", "TE: trailers", "Connection: TE")
	if string(m.Body) != "hi" || len(m.Trailers) != 1 || m.Trailers[0] != (rig.Field{Name: "X-Sum", Value: "9"}) {
		t.Errorf("client that takes trailers saw body %q, trailers %v, want hi and X-Sum: 9 alone", m.Body, m.Trailers)
	}
	m = w.get("a.example.test", "/")
	if string(m.Body) != "hi" || len(m.Trailers) != 0 {
		t.Errorf("client without TE: trailers saw body %q, trailers %v, want hi and none", m.Body, m.Trailers)
	}
}
