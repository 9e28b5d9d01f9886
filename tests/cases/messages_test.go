package cases

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// plain is a world with host a.example.test on service a.
func plain(t *testing.T) *world {
	t.Helper()
	return newWorld(t, "a", []rig.Object{rig.Ingress("t1", "i", rig.R("a.example.test", "/", "Prefix", "a"))})
}

func TestCB38HeadKeepsTheContentLength(t *testing.T) {
	w := plain(t)
	w.pods["a"].Handle(func(x *rig.Exchange) {
		if strings.HasPrefix(x.Start, "HEAD") {
			x.Write(rig.Lines("HTTP/1.1 200 OK", "Content-Length: 12345"))
			return
		}
		x.Answer(200, "a")
	})
	c := rig.Dial(t, w.Addr)
	best := time.Hour // of several: the machine has other work too
	for range 5 {
		start := time.Now()
		c.Send("HEAD /blob HTTP/1.1\r\nHost: a.example.test\r\n\r\n")
		if m := c.Read("HEAD"); m.Status != 200 || m.Value("Content-Length") != "12345" {
			t.Errorf("HEAD -> %d, Content-Length %q, want 200, 12345", m.Status, m.Value("Content-Length"))
		}
		best = min(best, time.Since(start))
	}
	if best > 100*time.Millisecond {
		t.Errorf("HEAD took %v at best, want 100 ms at most", best)
	}
	c.Send(rig.Get("a.example.test", "/"))
	if got := outcome(c.Read("GET")); got != "a" {
		t.Errorf("next request on the connection -> %s, want a", got)
	}
	if n := w.pods["a"].Conns(); n != 1 {
		t.Errorf("backend connections: %d, want 1, reused", n)
	}
}

func TestCB43StreamedBytesLeaveAtOnce(t *testing.T) {
	w := plain(t)
	sent := make(chan time.Time, 32)
	w.pods["a"].Handle(func(x *rig.Exchange) {
		x.Write(rig.Lines("HTTP/1.1 200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked"))
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := range 20 {
			<-tick.C
			event := fmt.Sprintf("data: %d\n\n", i)
			sent <- time.Now()
			x.Write(fmt.Sprintf("%x\r\n%s\r\n", len(event), event))
		}
		x.Write("0\r\n\r\n")
	})
	c := rig.Dial(t, w.Addr)
	c.Send(rig.Get("a.example.test", "/events"))
	c.ReadHead()
	c.SetReadDeadline(time.Now().Add(rig.Deadline))
	for i := range 20 {
		want := fmt.Sprintf("data: %d\n\n", i)
		chunk := make([]byte, len(fmt.Sprintf("%x\r\n%s\r\n", len(want), want)))
		if _, err := io.ReadFull(c.Reader(), chunk); err != nil || !strings.Contains(string(chunk), want) {
			t.Fatalf("event %d: %q, %v", i, chunk, err)
		}
		if late := time.Since(<-sent); late > 50*time.Millisecond {
			t.Errorf("event %d came %v after it was sent, want 50 ms at most", i, late)
		}
	}
}

func TestCB44ABrokenChunkedAnswerLooksBroken(t *testing.T) {
	for _, end := range []string{"RST", "FIN"} {
		for _, version := range []string{"1.1", "1.0"} {
			t.Run(end+" to HTTP "+version, func(t *testing.T) {
				w := plain(t)
				arrived := make(chan struct{})
				w.pods["a"].Handle(func(x *rig.Exchange) {
					x.Write(rig.Lines("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + "20000\r\n" + strings.Repeat("x", 64<<10))
					<-arrived
					if end == "RST" {
						x.Reset()
					} else {
						x.Close()
					}
				})
				c := rig.Dial(t, w.Addr)
				c.Send("GET / HTTP/" + version + "\r\nHost: a.example.test\r\n\r\n")
				c.ReadHead()
				c.SetReadDeadline(time.Now().Add(rig.Deadline))
				body := make([]byte, 64<<10)
				if _, err := io.ReadFull(c.Reader(), body); err != nil {
					t.Fatalf("data before the break: %v", err)
				}
				close(arrived)
				rest, err := io.ReadAll(c.Reader())
				if err != nil && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("after the break: %v, want the end of the connection", err)
				}
				all := string(body) + string(rest)
				if n := strings.Count(all, "x"); n != 64<<10 {
					t.Errorf("got %d bytes of the body, want all 65536", n)
				}
				if strings.Contains(all, "0\r\n\r\n") {
					t.Errorf("the answer ends like a complete one: %q", all[len(all)-20:])
				}
			})
		}
	}
}

func TestCB46BothFramings(t *testing.T) {
	w := plain(t)
	head := "POST / HTTP/1.1\r\nHost: a.example.test\r\n"
	for name, request := range map[string]string{
		"CL then TE":       head + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX",
		"TE then CL":       head + "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\nX",
		"TE twice":         head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"unknown coding":   head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"space before TE:": head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
		"vertical tab":     head + "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.0 with TE": "POST / HTTP/1.0\r\nHost: a.example.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := rig.Dial(t, w.Addr)
			c.Send(request)
			if got := c.Read("POST").Status; got != 400 && got != 501 {
				t.Errorf("status %d, want 400 or 501", got)
			}
			c.ExpectClosed(rig.Deadline)
			untouched(t, w.pods["a"])
		})
	}
}

func TestCB48MissingEmptyAndDoubledHost(t *testing.T) {
	w := newWorld(t, "a d", []rig.Object{
		rig.Ingress("t1", "i", rig.R("a.example.test", "/", "Prefix", "a")),
		rig.Ingress("t1", "any", rig.R("", "/", "Prefix", "d")),
	})
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\n\r\n": "400",
		"GET / HTTP/1.1\r\nHost: a.example.test\r\nHost: a.example.test\r\n\r\n": "400",
		"GET / HTTP/1.1\r\nHost: a.example.test\r\nHost: b.example.test\r\n\r\n": "400",
		"GET / HTTP/1.0\r\n\r\n": "d",
		"GET http://a.example.test/x HTTP/1.1\r\nHost: a.example.test\r\n\r\n":                        "a",
		"GET http://a.example.test:80/x HTTP/1.1\r\nHost: a.example.test\r\n\r\n":                     "a",
		"GET http://a.example.test/x HTTP/1.1\r\nHost: b.example.test\r\n\r\n":                        "400",
		"GET / HTTP/1.1\r\nHost: a{b\r\n\r\n":                                                         "400",
		"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n":                                                         "400",
		"GET / HTTP/1.1\r\nHost: a b\r\n\r\n":                                                         "400",
		"GET http://u:p@a.example.test/x HTTP/1.1\r\nHost: a.example.test\r\n\r\n":                    "400",
		"GET http://a.example.test/x#f HTTP/1.1\r\nHost: a.example.test\r\n\r\n":                      "400",
		"GET / HTTP/1.1\r\nHost: x.example.test\r\n\r\n":                                              "d",
		"GET http://a.example.test?q=1 HTTP/1.1\r\nHost: a.example.test\r\nConnection: close\r\n\r\n": "a",
	} {
		c := rig.Dial(t, w.Addr)
		c.Send(request)
		if got := outcome(c.Read("GET")); got != want {
			t.Errorf("%q -> %s, want %s", request, got, want)
		}
		c.Close()
	}
	var lines []string
	for _, r := range w.pods["a"].Requests() {
		lines = append(lines, r.Line())
	}
	slices.Sort(lines)
	if want := []string{"GET /?q=1", "GET /x", "GET /x"}; !slices.Equal(lines, want) {
		t.Errorf("a saw %q, want origin form %q", lines, want)
	}
}

func TestCB49HTTP10ClientsStillWork(t *testing.T) {
	w := plain(t)
	stream := func(x *rig.Exchange) {
		x.Write(rig.Lines("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + "5\r\nhello\r\n0\r\n\r\n")
	}
	for name, handler := range map[string]func(*rig.Exchange){
		"chunked": stream,
		"length":  func(x *rig.Exchange) { x.Answer(200, "hello") },
	} {
		w.pods["a"].Handle(handler)
		c := rig.Dial(t, w.Addr)
		c.Send("GET / HTTP/1.0\r\nHost: a.example.test\r\n\r\n")
		m := c.Read("GET")
		if m.Status != 200 || string(m.Body) != "hello" || m.Has("Transfer-Encoding") {
			t.Errorf("%s: %d %q, Transfer-Encoding %q, want 200 hello without it", name, m.Status, m.Body, m.Value("Transfer-Encoding"))
		}
		c.ExpectClosed(rig.Deadline)
		if got := w.pods["a"].Last(t).Start; got != "GET / HTTP/1.1" {
			t.Errorf("%s: backend saw %q, want HTTP/1.1", name, got)
		}
	}
	c := rig.Dial(t, w.Addr)
	for i := range 2 {
		w.pods["a"].Handle(func(x *rig.Exchange) { x.Answer(200, "hello") })
		c.Send("GET / HTTP/1.0\r\nHost: a.example.test\r\nConnection: keep-alive\r\n\r\n")
		m := c.Read("GET")
		if m.Status != 200 || !strings.EqualFold(m.Value("Connection"), "keep-alive") {
			t.Errorf("request %d: %d, Connection %q, want 200 keep-alive", i+1, m.Status, m.Value("Connection"))
		}
	}
}

func TestCB50FieldNamesKeepTheirSpelling(t *testing.T) {
	w := plain(t)
	w.pods["a"].Handle(func(x *rig.Exchange) { x.Answer(200, "a", "ETag: 1", "x-lower: 2", "X-DUP: 1", "x-dup: 2") })
	m := w.get("a.example.test", "/", "x-MiXed: 1", `SOAPAction: "u"`, "Dup: 1", "dUP: 2")
	mustHave(t, "client", m, rig.Field{Name: "ETag", Value: "1"}, rig.Field{Name: "x-lower", Value: "2"},
		rig.Field{Name: "X-DUP", Value: "1"}, rig.Field{Name: "x-dup", Value: "2"})
	mustHave(t, "backend", w.pods["a"].Last(t).Message, rig.Field{Name: "x-MiXed", Value: "1"},
		rig.Field{Name: "SOAPAction", Value: `"u"`}, rig.Field{Name: "Dup", Value: "1"}, rig.Field{Name: "dUP", Value: "2"})
}

// mustHave fails unless fields are there in this order.
func mustHave(t *testing.T, who string, m *rig.Message, fields ...rig.Field) {
	t.Helper()
	at := 0
	for _, f := range fields {
		i := slices.Index(m.Fields[at:], f)
		if i < 0 {
			t.Errorf("%s saw %v, want %v (in this order)", who, m.Fields, f)
			return
		}
		at += i + 1
	}
}
