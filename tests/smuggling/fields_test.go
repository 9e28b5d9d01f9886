package smuggling

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

func TestConnectionRemovesOnlyUnknownFields(t *testing.T) {
	w := newWorld(t)
	w.accepted(t, get("Connection: X-Forwarded-For, Authorization, Host, Content-Length, X-Secret, keep-alive", "X-Secret: 1", "Authorization: Basic eA==",
		"Keep-Alive: timeout=5", "Proxy-Connection: keep-alive", "TE: trailers", "Proxy: http://evil.test"),
		[]string{"Host: " + host + "\r\n", "Authorization: Basic eA==\r\n", "X-Forwarded-For: 127.0.0.1\r\n"},
		[]string{"x-secret", "keep-alive:", "proxy-connection", "\r\nproxy:"})
}

// TestConnectionDoesNotTakeTheFramingAway: else the body would be the next
// request.
func TestConnectionDoesNotTakeTheFramingAway(t *testing.T) {
	w := newWorld(t)
	const hidden = "GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n"
	w.accepted(t, post(hidden, "Connection: Content-Length", "Content-Length: 33"),
		[]string{"Content-Length: 33\r\n", "\r\n\r\n" + hidden}, []string{"connection:"})
	w.accepted(t, post("21\r\n"+hidden+"\r\n"+empty, "Connection: Transfer-Encoding, Trailer", "Transfer-Encoding: chunked"),
		[]string{"Transfer-Encoding: chunked\r\n", "\r\n\r\n21\r\n" + hidden}, []string{"connection:"})
}

func TestForwardedFieldsOfClientsAreReplaced(t *testing.T) {
	w := newWorld(t)
	w.accepted(t, get("X-Forwarded-For: 6.6.6.6", "X-Real-IP: 6.6.6.6", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil.test", "X-Forwarded-Port: 1", "X-Forwarded-Scheme: https"),
		[]string{"X-Forwarded-For: 127.0.0.1\r\n", "X-Forwarded-Proto: http\r\n", "X-Forwarded-Host: " + host + "\r\n"},
		[]string{"\nx-forwarded-for: 6.6.6.6", "ip: 6.6.6.6", "evil.test", ": https", "port: 1\r\n"})
}

func TestUnderscoreAliasesAreDropped(t *testing.T) {
	w := newWorld(t)
	w.accepted(t, post("hello", "Content-Length: 5", "X_Auth_User: root", "Content_Length: 50", "X_Forwarded_For: 6.6.6.6"),
		[]string{"Content-Length: 5\r\n", "\r\n\r\nhello"}, []string{"x_auth_user", "content_length", "x_forwarded_for"})
}

func TestTrailersNeverBecomeFields(t *testing.T) {
	w := newWorld(t)
	w.accepted(t, post("2\r\nhi\r\n0\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\nHost: evil.test\r\nAuthorization: x\r\nX-Ok: 1\r\n\r\n", "Transfer-Encoding: chunked"),
		[]string{"0\r\nX-Ok: 1\r\n\r\n"}, []string{"evil.test", "authorization", "content-length"})
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	w := newWorld(t)
	w.backend.Handle(func(x *rig.Exchange) {
		if strings.HasSuffix(x.Line(), "/1") {
			<-time.After(200 * time.Millisecond) // the first is the slowest
		}
		echoTarget(x)
	})
	c := rig.Dial(t, w.Addr)
	c.Send(rig.Get(host, "/1") + post("abc", "Content-Length: 3") + rig.Get(host, "/3"))
	for _, want := range []string{"/1", "/p", "/3"} {
		if got := string(c.Read("GET").Body); got != "answer to "+want {
			t.Errorf("got %q, want answer to %s", got, want)
		}
	}
}

func TestContinueIsNotTakenForTheFinalAnswer(t *testing.T) {
	w := newWorld(t)
	w.backend.Handle(func(x *rig.Exchange) {
		if x.Has("Expect") {
			x.Write("HTTP/1.1 100 Continue\r\n\r\n")
		}
		echoTarget(x)
	})
	c := rig.Dial(t, w.Addr)
	c.Send(post("", "Content-Length: 5", "Expect: 100-continue"))
	if m := c.ReadHead(); m.Status != 100 {
		t.Fatalf("first answer %d, want 100", m.Status)
	}
	c.Send("hello" + rig.Get(host, "/next"))
	for _, want := range []string{"/p", "/next"} {
		if m := c.Read("POST"); m.Status != 200 || string(m.Body) != "answer to "+want {
			t.Errorf("got %d %q, want answer to %s", m.Status, m.Body, want)
		}
	}
}

func TestBodySentWithoutWaitingForContinue(t *testing.T) {
	w := newWorld(t)
	w.accepted(t, post("hello", "Content-Length: 5", "Expect: 100-continue"), []string{"\r\n\r\nhello"}, nil)
}

// TestAnExpectationWithoutBody: there is nothing to continue with, so what follows
// the head is the next request, whether the backend sends 100 or not.
func TestAnExpectationWithoutBody(t *testing.T) {
	w := newWorld(t)
	expecting := get("Expect: 100-continue")
	w.accepted(t, expecting, nil, []string{"content-length", "transfer-encoding"})
	w.backend.Handle(func(x *rig.Exchange) {
		if x.Has("Expect") {
			x.Write("HTTP/1.1 100 Continue\r\n\r\n")
		}
		echoTarget(x)
	})
	w.accepted(t, expecting, nil, nil)
	c := rig.Dial(t, w.Addr)
	c.Send(expecting + rig.Get(host, "/next"))
	for _, want := range []string{"/p", "/next"} {
		if m := c.Read("GET"); m.Status != 200 || string(m.Body) != "answer to "+want {
			t.Errorf("got %d %q, want answer to %s", m.Status, m.Body, want)
		}
	}
}

// TestAFinalAnswerInsteadOfContinue: the body was announced and never sent, so
// the backend's connection can't be used again, and the client's bytes that
// follow are a body or a new request, but never both.
func TestAFinalAnswerInsteadOfContinue(t *testing.T) {
	w := newWorld(t)
	w.backend.Handle(func(x *rig.Exchange) {
		if x.Has("Expect") {
			x.Write("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno")
			io.Copy(io.Discard, x.Stream())
			x.Close()
			return
		}
		echoTarget(x)
	})
	c := rig.Dial(t, w.Addr)
	c.Send(post("", "Content-Length: 31", "Expect: 100-continue"))
	if m := c.Read("POST"); m.Status != 403 {
		t.Fatalf("answer %d, want 403", m.Status)
	}
	// These 31 bytes are the body that was announced.
	c.TrySend("GET /x HTTP/1.1\r\nHost: " + "evil\r\n\r\n\r\n")
	if m, err := c.TryRead("GET", 2*time.Second); err == nil {
		t.Errorf("the body was answered as a request: %d %q", m.Status, m.Body)
	}
	w.innocent(t, "after")
	for _, r := range w.backend.Requests() {
		if strings.Contains(r.Line(), "/x") {
			t.Errorf("backend saw the body as a request: %q", r.Raw)
		}
		if strings.Contains(r.Line(), "innocent") && r.Conn == 1 {
			t.Error("a backend connection that waits for a body was used again")
		}
	}
}

func TestAnEarlyAnswerDoesNotDesynchronise(t *testing.T) {
	w := newWorld(t)
	w.backend.Handle(func(x *rig.Exchange) {
		if x.Line() == "POST /p" {
			x.Write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly")
			return // the rig reads the body, then waits for the next request
		}
		echoTarget(x)
	})
	c := rig.Dial(t, w.Addr)
	c.Send(post("", "Content-Length: 10"))
	if m := c.Read("POST"); string(m.Body) != "early" {
		t.Fatalf("answer %d %q, want early", m.Status, m.Body)
	}
	w.innocent(t, "meanwhile")
	if err := c.TrySend("0123456789" + rig.Get(host, "/next")); err != nil {
		return // closed on both sides: right too
	}
	m, err := c.TryRead("GET", rig.Deadline)
	if err == nil && string(m.Body) != "answer to /next" {
		t.Errorf("the next request got %d %q", m.Status, m.Body)
	}
	w.innocent(t, "after")
	for _, r := range w.backend.Requests() {
		if strings.HasPrefix(r.Line(), "0123") {
			t.Errorf("backend saw the body as a request: %q", r.Raw)
		}
	}
}
