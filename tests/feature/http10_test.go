package feature

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/weirproxy/weir/tests/rig"
)

// TestHTTP10EndpointsKeepConnectionsOnlyIfTheySaySo (RFC 9112, 9.3).
func TestHTTP10EndpointsKeepConnectionsOnlyIfTheySaySo(t *testing.T) {
	const requests = 5
	for _, c := range []struct {
		name   string
		fields []string
		conns  int
	}{
		{"keep-alive", []string{"Connection: keep-alive"}, 1},
		{"nothing said", nil, requests},
		{"close", []string{"Connection: close"}, requests},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPool(t, 1, nil)
			b := p.backends[0]
			p.handle(func(x *rig.Exchange) { // it never closes by itself
				x.Write(rig.Lines(append([]string{"HTTP/1.0 200 OK", "Content-Length: 5"}, c.fields...)...) + "hello")
			})
			client := rig.Dial(t, p.Addr)
			for i := range requests {
				client.Send(rig.Get(host, "/"))
				m := client.Read("GET")
				if m.Status != 200 || string(m.Body) != "hello" || m.Has("Connection") {
					t.Fatalf("request %d -> %d %q, Connection %q, want 200 hello and none", i, m.Status, m.Body, m.Value("Connection"))
				}
			}
			if got := b.Conns(); got != c.conns {
				t.Errorf("%d requests took %d connections, want %d", requests, got, c.conns)
			}
			if c.conns == 1 {
				return
			}
			rig.Eventually(t, rig.Deadline, "connections closed", func() error {
				if n := b.Open(); n != 0 {
					return fmt.Errorf("%d are open", n)
				}
				return nil
			})
		})
	}
}

// TestAnswersThatEndWithTheConnection reach an HTTP/1.1 client in chunks, so that
// its connection stays, and an HTTP/1.0 client as they are.
func TestAnswersThatEndWithTheConnection(t *testing.T) {
	for _, version := range []string{"HTTP/1.0", "HTTP/1.1"} {
		for _, size := range []int{0, 1 << 20} {
			t.Run(fmt.Sprintf("%s, %d bytes", version, size), func(t *testing.T) {
				p := newPool(t, 1, nil)
				body := strings.Repeat("0123456789abcdef", size/16)
				p.handle(func(x *rig.Exchange) {
					x.Write(rig.Lines(version+" 200 OK", "X-From: origin") + body)
					x.Close()
				})
				check := func(m *rig.Message, chunked bool) {
					t.Helper()
					if m.Status != 200 || !bytes.Equal(m.Body, []byte(body)) || m.Value("X-From") != "origin" {
						t.Errorf("%d with %d bytes, X-From %q, want 200 with %d bytes", m.Status, len(m.Body), m.Value("X-From"), size)
					}
					if m.Chunked != chunked || m.Has("Content-Length") {
						t.Errorf("chunked %v, Content-Length %q, want chunked %v", m.Chunked, m.Values("Content-Length"), chunked)
					}
				}
				c := rig.Dial(t, p.Addr)
				for range 2 {
					c.Send(rig.Get(host, "/"))
					m := c.Read("GET")
					check(m, true)
					if m.Has("Connection") {
						t.Errorf("Connection: %q to an HTTP/1.1 client, want it kept", m.Value("Connection"))
					}
				}
				for _, field := range []string{"X-Plain: 1", "Connection: keep-alive"} {
					c := rig.Dial(t, p.Addr)
					c.Send(rig.Lines("GET / HTTP/1.0", "Host: "+host, field))
					m := c.Read("GET") // reads to the end of the stream
					check(m, false)
					if got := m.Value("Connection"); got != "close" {
						t.Errorf("Connection: %q to an HTTP/1.0 client, want close", got)
					}
				}
				if got := p.backends[0].Conns(); got != 4 {
					t.Errorf("4 requests took %d connections to the endpoint", got)
				}
			})
		}
	}
}
