package cases

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// The key of RFC 6455, 1.3, and what a server must answer to it.
const (
	wsKey    = "dGhlIHNhbXBsZSBub25jZQ=="
	wsAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

func upgrade(host, target string) string {
	return rig.Get(host, target, "Connection: upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: "+wsKey, "Sec-WebSocket-Version: 13")
}

// switchProtocols answers 101 and hands the connection over.
func switchProtocols(x *rig.Exchange) {
	x.Write(rig.Lines("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Accept: "+wsAccept))
}

func TestCB29AnOfferOfH2cIsIgnored(t *testing.T) {
	w := newWorld(t, "a", []rig.Object{rig.Ingress("t1", "i", rig.R("a.example.test", "/", "Prefix", "a"))})
	c := rig.Dial(t, w.Addr)
	for _, fields := range [][]string{
		{"Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA"},
		{"Connection: Upgrade", "Upgrade: TLS/1.2"},
		nil, // the connection stays usable
	} {
		c.Send(rig.Get("a.example.test", "/", fields...))
		if m := c.Read("GET"); m.Status != 200 {
			t.Fatalf("%q -> %d, want 200", fields, m.Status)
		}
		seen := w.pods["a"].Last(t)
		for _, name := range []string{"Upgrade", "HTTP2-Settings"} {
			if seen.Has(name) {
				t.Errorf("%q: backend saw %s: %q", fields, name, seen.Value(name))
			}
		}
		if strings.Contains(strings.ToLower(seen.Value("Connection")), "upgrade") {
			t.Errorf("%q: backend saw Connection: %s", fields, seen.Value("Connection"))
		}
	}
}

func TestCB31NoTunnelBeforeTheBackends101(t *testing.T) {
	w := newWorld(t, "a adm", []rig.Object{
		rig.Ingress("t1", "p", rig.R("u.example.test", "/admin", "Prefix", "adm")),
		rig.Ingress("t1", "q", rig.R("u.example.test", "/", "Prefix", "a")),
	})
	c := rig.Dial(t, w.Addr)
	c.Send(upgrade("u.example.test", "/") + rig.Get("u.example.test", "/admin"))
	for _, want := range []string{"a", "adm"} {
		if got := outcome(c.Read("GET")); got != want {
			t.Errorf("answer from %s, want %s", got, want)
		}
	}
	if got := w.pods["a"].Requests(); len(got) != 1 || got[0].Line() != "GET /" {
		t.Errorf("a saw %q, want GET / alone", w.pods["a"].Received())
	}
	if strings.Contains(w.pods["a"].Received(), "admin") {
		t.Errorf("a received the second request: %q", w.pods["a"].Received())
	}

	w.pods["a"].Forget()
	c = rig.Dial(t, w.Addr)
	c.Send(strings.Replace(strings.Replace(upgrade("u.example.test", "/"), "GET", "POST", 1), "Connection:", "Content-Length: 5\r\nConnection:", 1) + "12345")
	if got := c.Read("POST").Status; got != 400 {
		t.Errorf("upgrade with a body -> %d, want 400", got)
	}
	c.ExpectClosed(rig.Deadline)
	untouched(t, w.pods["a"])
}

const mebi = 1 << 20

func TestCB32HalfCloseThroughATunnelClientFirst(t *testing.T) {
	w := newWorld(t, "a", []rig.Object{rig.Ingress("t1", "i", rig.R("ws.example.test", "/", "Prefix", "a"))})
	got := make(chan string, 1)
	w.pods["a"].Handle(func(x *rig.Exchange) {
		switchProtocols(x)
		b, err := io.ReadAll(x.Stream())
		got <- fmt.Sprint(string(b), err)
		x.Write(strings.Repeat("b", mebi))
		x.Close()
	})
	c := rig.Dial(t, w.Addr)
	c.Send(upgrade("ws.example.test", "/"))
	if m := c.ReadHead(); m.Status != 101 || m.Value("Sec-WebSocket-Accept") != wsAccept {
		t.Fatalf("handshake: %+v", m)
	}
	c.Send("0123456789")
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != "0123456789<nil>" {
		t.Errorf("backend read %q, want the ten bytes and EOF", s)
	}
	wantStream(t, c.Reader(), c.TCPConn, 'b')
}

func TestCB32HalfCloseThroughATunnelBackendFirst(t *testing.T) {
	w := newWorld(t, "a", []rig.Object{rig.Ingress("t1", "i", rig.R("ws.example.test", "/", "Prefix", "a"))})
	type result struct {
		b   []byte
		err error
	}
	got := make(chan result, 1)
	w.pods["a"].Handle(func(x *rig.Exchange) {
		switchProtocols(x)
		x.Write("0123456789")
		x.TCP.CloseWrite()
		b, err := io.ReadAll(x.Stream())
		got <- result{b, err}
		x.Close()
	})
	c := rig.Dial(t, w.Addr)
	c.Send(upgrade("ws.example.test", "/"))
	c.ReadHead()
	c.SetReadDeadline(time.Now().Add(rig.Deadline))
	if b, err := io.ReadAll(c.Reader()); string(b) != "0123456789" || err != nil {
		t.Fatalf("client read %q, %v, want the ten bytes and EOF", b, err)
	}
	c.Send(strings.Repeat("c", mebi))
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-got:
		if r.err != nil || len(r.b) != mebi || bytes.Count(r.b, []byte("c")) != mebi {
			t.Errorf("backend read %d bytes, %v, want 1 MiB and EOF", len(r.b), r.err)
		}
	case <-time.After(rig.Deadline):
		t.Error("backend still reads")
	}
}

// wantStream reads exactly 1 MiB of letter and then EOF.
func wantStream(t *testing.T, r io.Reader, conn net.Conn, letter byte) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(rig.Deadline))
	b, err := io.ReadAll(r)
	if err != nil || len(b) != mebi || bytes.Count(b, []byte{letter}) != mebi {
		t.Errorf("read %d bytes, %v, want 1 MiB of %q and EOF", len(b), err, letter)
	}
}
