package l7

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestOnlyAValidSwitchOpensATunnel: bytes pass only after a 101 that accepts what
// the client offered (RFC 6455, 4.1; RFC 9110, 7.8).
func TestOnlyAValidSwitchOpensATunnel(t *testing.T) {
	const offer = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	for _, c := range []struct {
		name, offer, answer string
		want                int
	}{
		{"valid", offer, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", 101},
		{"wrong accept", offer, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOp=\r\n", 502},
		{"no accept", offer, "Connection: Upgrade\r\nUpgrade: websocket\r\n", 502},
		{"accept in another case", offer, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", 502},
		{"accept cut short", offer, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xO\r\n", 502},
		{"empty accept", offer, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: \r\n", 502},
		{"the key as accept", offer, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: dGhlIHNhbXBsZSBub25jZQ==\r\n", 502},
		{"other option in Connection", offer, "Connection: keep-alive\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", 502},
		{"no protocol", offer, "Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", 502},
		{"two protocols", offer, "Connection: Upgrade\r\nUpgrade: websocket, raw\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", 502},
		{"unasked, no protocol", "", "", 502},
		{"unasked, Connection alone", "", "Connection: Upgrade\r\n", 502},
		{"another version", "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n", "Connection: Upgrade\r\nUpgrade: SPDY/3.2\r\n", 502},
		{"other protocol", offer, "Connection: Upgrade\r\nUpgrade: raw\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", 502},
		{"not in Connection", offer, "Upgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", 502},
		{"unasked", "", "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", 502},
		{"another protocol, valid", "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n", "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n", 101},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			tunnelled := make(chan string, 1)
			go func() {
				for {
					b, err := l.Accept()
					if err != nil {
						return
					}
					in := bufio.NewReader(b)
					http.ReadRequest(in)
					io.WriteString(b, "HTTP/1.1 101 Switching Protocols\r\n"+c.answer+"\r\nhello")
					rest, _ := io.ReadAll(in)
					tunnelled <- string(rest)
					b.Close()
				}
			}()
			bed := serve(t, Config{}, nil, l.Addr().String())
			conn, err := net.Dial("tcp", bed.server.Addresses()[0].String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(5 * time.Second))
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n"+c.offer+"\r\n")
			in := bufio.NewReader(conn)
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != c.want {
				t.Fatalf("status %d, want %d", resp.StatusCode, c.want)
			}
			io.WriteString(conn, "bytes for the tunnel")
			conn.(*net.TCPConn).CloseWrite()
			rest, _ := io.ReadAll(in)
			got := <-tunnelled
			if c.want == 101 && (string(rest) != "hello" || got != "bytes for the tunnel") {
				t.Errorf("client got %q, endpoint got %q", rest, got)
			}
			if c.want != 101 && (strings.Contains(string(rest), "hello") || got != "") {
				t.Errorf("without a tunnel the client got %q, the endpoint %q", rest, got)
			}
		})
	}
}
