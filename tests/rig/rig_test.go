package rig

import (
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
)

func TestRecorderKeepsTheExactBytes(t *testing.T) {
	b := NewRecorder(t, "a")
	c := Dial(t, b.Addr)
	first := "POST /x HTTP/1.1\r\nhOST: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 9\r\n\r\n"
	second := Get("h", "/y")
	c.Send(first + second)
	for range 2 {
		if m := c.Read("GET"); m.Status != 200 || string(m.Body) != "a" {
			t.Fatalf("answer = %d %q, want 200 a", m.Status, m.Body)
		}
	}
	all := b.Requests()
	if len(all) != 2 || all[0].Raw != first || all[1].Raw != second {
		t.Fatalf("recorded %+v, want the two requests as sent", all)
	}
	r := all[0]
	if string(r.Body) != "hi" || len(r.Trailers) != 1 || r.Trailers[0] != (Field{"X-Sum", "9"}) {
		t.Errorf("body %q, trailers %v", r.Body, r.Trailers)
	}
	if got, want := b.Bytes(), int64(len(first)+len(second)); got != want {
		t.Errorf("Bytes() = %d, want %d", got, want)
	}
}

func TestClientRefusesAnswersThatAreNotHTTP(t *testing.T) {
	for name, answer := range map[string]string{
		"bare line feed":      "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
		"both framings":       "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two lengths":         "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
		"chunk without end":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhiX\r\n0\r\n\r\n",
		"body cut short":      "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
		"no last chunk":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n",
		"space before colon":  "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
		"two-digit status":    "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
		"end inside the head": "HTTP/1.1 200 OK\r\nContent-",
	} {
		t.Run(name, func(t *testing.T) {
			b := NewRecorder(t, "a").Handle(func(x *Exchange) {
				x.Write(answer)
				x.Close()
			})
			c := Dial(t, b.Addr)
			c.Send(Get("h", "/"))
			if m, err := c.TryRead("GET", Deadline); err == nil || err == io.EOF {
				t.Errorf("answer %q read as %+v, %v", answer, m, err)
			}
		})
	}
}

func TestResetReachesTheOtherSide(t *testing.T) {
	b := NewRecorder(t, "a").Handle((*Exchange).Reset)
	c := Dial(t, b.Addr)
	c.Send(Get("h", "/"))
	if _, err := c.TryRead("GET", Deadline); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read = %v, want a reset", err)
	}
}

func TestManifestsAreWrittenByKindAndName(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	o := Ingress("t1", "web", R("a.test", "/", "Prefix", "s")).Annotate("x/y", "1").Age(61)
	if err := d.Put(o); err != nil {
		t.Fatal(err)
	}
	if got := d.file(o); !strings.HasSuffix(got, "/ingress.t1.web.json") {
		t.Errorf("file = %s", got)
	}
	if got := o["metadata"].(map[string]any)["creationTimestamp"]; got != "2025-01-01T00:01:01Z" {
		t.Errorf("age = %v", got)
	}
	if err := d.Delete(o); err != nil {
		t.Error(err)
	}
}
