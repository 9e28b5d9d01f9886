package peers

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/weirproxy/weir/tests/rig"
)

// echo sends every message back in its own type, and ends with the status that
// the client closes with.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"echo"}})
	if err != nil {
		return // it has answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(2 << 20)
	for {
		kind, b, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		if conn.Write(r.Context(), kind, b) != nil {
			return
		}
		if string(b) == "close yourself" {
			conn.Close(websocket.StatusGoingAway, "as you wish")
			return
		}
	}
}

func dial(t *testing.T, a *rig.Agent) (context.Context, *websocket.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rig.Deadline)
	t.Cleanup(cancel)
	conn, resp, err := websocket.Dial(ctx, "ws://"+host+"/", &websocket.DialOptions{HTTPClient: client(a), Subprotocols: []string{"echo"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("Sec-WebSocket-Protocol"); got != "echo" {
		t.Errorf("subprotocol %q, want echo", got)
	}
	t.Cleanup(func() { conn.CloseNow() })
	conn.SetReadLimit(2 << 20)
	return ctx, conn
}

func TestWebSocketMessagesBothWays(t *testing.T) {
	a := weir(t, serve(t, http.HandlerFunc(echo)))
	ctx, conn := dial(t, a)
	for name, m := range map[string]struct {
		kind websocket.MessageType
		body []byte
	}{
		"text":         {websocket.MessageText, []byte("grüezi")},
		"empty":        {websocket.MessageText, nil},
		"binary":       {websocket.MessageBinary, []byte{0, 1, 2, 255}},
		"text 1 MiB":   {websocket.MessageText, []byte(strings.Repeat("x", 1<<20))},
		"binary 1 MiB": {websocket.MessageBinary, pattern(1 << 20)},
	} {
		if err := conn.Write(ctx, m.kind, m.body); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		kind, b, err := conn.Read(ctx)
		if err != nil || kind != m.kind || !bytes.Equal(b, m.body) {
			t.Fatalf("%s: got %v of %d bytes, %v", name, kind, len(b), err)
		}
	}
}

func TestWebSocketCloseHandshake(t *testing.T) {
	a := weir(t, serve(t, http.HandlerFunc(echo)))
	_, conn := dial(t, a)
	if err := conn.Close(websocket.StatusNormalClosure, "bye"); err != nil {
		t.Errorf("closed by the client: %v, want the server's close frame", err)
	}
	ctx, conn := dial(t, a)
	if err := conn.Write(ctx, websocket.MessageText, []byte("close yourself")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.Read(ctx); err != nil {
		t.Fatal(err)
	}
	if _, _, err := conn.Read(ctx); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("closed by the server: %v, want status going away", err)
	}
}
