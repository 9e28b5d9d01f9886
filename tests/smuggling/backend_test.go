package smuggling

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// attack makes the backend answer requests to /p with answer, and all others
// properly. Connections stay open behind the answer.
func attack(w *world, answer string) {
	w.backend.Handle(func(x *rig.Exchange) {
		if !strings.HasSuffix(x.Line(), " /p") {
			echoTarget(x)
			return
		}
		if x.ReadBody() == nil {
			x.Write(answer)
		}
	})
}

// fresh sends an innocent request and fails if it shares a connection with an
// earlier request to /p.
func (w *world) fresh(t *testing.T, id string) {
	t.Helper()
	w.innocent(t, id)
	bad := map[int]bool{}
	for _, r := range w.backend.Requests() {
		if bad[r.Conn] {
			t.Errorf("connection %d was used again after a bad answer, for %q", r.Conn, r.Line())
		}
		if strings.HasSuffix(r.Line(), " /p") {
			bad[r.Conn] = true
		}
	}
}

func TestBadAnswersOfBackendsGive502(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, answer := range map[string]string{
		"CL and TE":            ok + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two different CL":     ok + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
		"two equal CL":         ok + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		"CL list":              ok + "Content-Length: 5, 5\r\n\r\nhello",
		"CL negative":          ok + "Content-Length: -1\r\n\r\n",
		"TE unknown":           ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"TE twice":             ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"unasked 101":          "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nraw",
		"HTTP/0.9":             "<html>hello</html>",
		"HTTP/2 text":          "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
		"status of two digits": "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
		"status of letters":    "HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n",
		"bare LF":              "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
		"folded":               ok + "X: a\r\n b\r\nContent-Length: 0\r\n\r\n",
		"NUL in a value":       ok + "X: a\x00b\r\nContent-Length: 0\r\n\r\n",
		"CR in a value":        ok + "X: a\rSet-Cookie: x\r\nContent-Length: 0\r\n\r\n",
		"space before colon":   ok + "Content-Length : 0\r\n\r\n",
		"no colon":             ok + "Content-Length\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			attack(w, answer)
			m := rig.Do(t, w.Addr, "GET", get())
			if m.Status != 502 || m.Value("Server") != "weir" {
				t.Errorf("status %d of server %q, want weir's own 502", m.Status, m.Value("Server"))
			}
			w.fresh(t, "after")
		})
	}
}

func TestAnEndlessHeadOfABackendIsCut(t *testing.T) {
	w := newWorld(t)
	ended := make(chan bool, 1)
	w.backend.Handle(func(x *rig.Exchange) {
		if !strings.HasSuffix(x.Line(), " /p") {
			echoTarget(x)
			return
		}
		x.TCP.SetWriteDeadline(time.Now().Add(rig.Deadline))
		_, err := x.TCP.Write([]byte("HTTP/1.1 200 OK\r\n"))
		for n := 0; err == nil && n < 64<<20; n += 1024 {
			_, err = fmt.Fprintf(x.TCP, "X: %s\r\n", strings.Repeat("y", 1019))
		}
		select {
		case ended <- err != nil:
		default: // a retry
		}
		x.Close()
	})
	if m := rig.Do(t, w.Addr, "POST", post("", "Content-Length: 0")); m.Status != 502 {
		t.Errorf("status %d, want 502", m.Status)
	}
	if !<-ended {
		t.Error("64 MiB of head were read, want the connection cut at the limit")
	}
	w.fresh(t, "after")
}

func TestAFloodOfInterimAnswersIsCut(t *testing.T) {
	w := newWorld(t)
	ended := make(chan bool, 1)
	w.backend.Handle(func(x *rig.Exchange) {
		if !strings.HasSuffix(x.Line(), " /p") {
			echoTarget(x)
			return
		}
		x.TCP.SetWriteDeadline(time.Now().Add(rig.Deadline))
		var err error
		for n := 0; err == nil && n < 1_000_000; n++ {
			_, err = x.TCP.Write([]byte("HTTP/1.1 102 Processing\r\n\r\n"))
		}
		select {
		case ended <- err != nil:
		default:
		}
		x.Close()
	})
	c := rig.Dial(t, w.Addr)
	c.Send(post("", "Content-Length: 0"))
	m, err := c.TryRead("POST", rig.Deadline)
	if err == nil && m.Status != 502 {
		t.Errorf("status %d, want 502 or the end of the connection", m.Status)
	}
	select {
	case cut := <-ended:
		if !cut {
			t.Error("a million interim answers were read, want the connection cut")
		}
	case <-time.After(2 * rig.Deadline):
		t.Error("backend still writes")
	}
	w.fresh(t, "after")
}

func TestBytesBehindAnAnswerNeverReachAnybody(t *testing.T) {
	const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	for name, c := range map[string]struct{ method, answer string }{
		"behind a length":     {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" + evil},
		"behind chunks":       {"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + evil},
		"body on HEAD":        {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 72\r\n\r\n" + evil},
		"body on 204":         {"GET", "HTTP/1.1 204 No Content\r\n\r\n" + evil},
		"body on 304":         {"GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 72\r\n\r\n" + evil},
		"204 with CL":         {"GET", "HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nevil"},
		"empty with a second": {"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" + evil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			attack(w, c.answer)
			conn := rig.Dial(t, w.Addr)
			conn.Send(c.method + " /p HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
			m, err := conn.TryRead(c.method, rig.Deadline)
			if err != nil || strings.Contains(string(m.Body), "evil") {
				t.Errorf("answer %+v, %v, want the first answer alone or 502", m, err)
			}
			if err := conn.TrySend(rig.Get(host, "/behind")); err == nil {
				if m, err := conn.TryRead("GET", rig.Deadline); err == nil && string(m.Body) != "answer to /behind" {
					t.Errorf("next request got %d %q", m.Status, m.Body)
				}
			}
			w.fresh(t, "after")
		})
	}
}

// TestLateBytesOnAnIdleConnectionCloseIt: they come when the connection is back
// in the pool, and may not be taken for the answer to the next request.
func TestLateBytesOnAnIdleConnectionCloseIt(t *testing.T) {
	w := newWorld(t)
	gone := make(chan bool, 1)
	w.backend.Handle(func(x *rig.Exchange) {
		echoTarget(x)
		if strings.HasSuffix(x.Line(), " /p") {
			<-time.After(100 * time.Millisecond)
			x.Write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
			_, ok := x.Gone(rig.Deadline)
			gone <- ok
			x.Close()
		}
	})
	if m := rig.Do(t, w.Addr, "GET", get()); m.Status != 200 {
		t.Fatalf("status %d", m.Status)
	}
	if !<-gone {
		t.Error("the connection is still open after bytes that nobody asked for")
	}
	w.fresh(t, "after")
}
