package http1

import (
	"fmt"
	"math"
	"net/http"
	"testing"
)

func TestChunkHead(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 15, 16, 255, 256, 4095, 4096, 65536, 1<<32 - 1, math.MaxInt} {
		want := fmt.Sprintf("%x\r\n", n)
		room := make([]byte, ChunkHeadMax)
		if got := string(room[PutChunkHead(room, n):]); got != want {
			t.Errorf("PutChunkHead(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestAppend(t *testing.T) {
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{AppendField([]byte("x"), []byte("Name"), []byte("value")), "xName: value\r\n"},
		{AppendUint(nil, 18446744073709551615), "18446744073709551615"},
		{AppendStatusLine(nil, 200, []byte("OK")), "HTTP/1.1 200 OK\r\n"},
		{AppendStatusLine(nil, 404, nil), "HTTP/1.1 404 \r\n"},
		// RFC 6455, 1.3
		{WebSocketAccept([]byte("x"), []byte(webSocketKey)), "xs3pPLMBiTxaQ9kYGzzhZRbK+xOo="},
	} {
		if string(c.got) != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// The texts are those of net/http, but for what RFC 9110 renamed, the spelling
// of 418, and 510, which is obsolete.
func TestStatusText(t *testing.T) {
	changed := map[int]string{413: "Content Too Large", 414: "URI Too Long", 416: "Range Not Satisfiable", 422: "Unprocessable Content", 418: "I'm a Teapot", 510: ""}
	for status := -1; status < 1000; status++ {
		want, ok := changed[status]
		if !ok {
			want = http.StatusText(status)
		}
		if got := StatusText(status); got != want {
			t.Errorf("StatusText(%d) = %q, want %q", status, got, want)
		}
	}
}

func TestIdempotentMethods(t *testing.T) {
	for text, want := range map[string]bool{
		"GET": true, "HEAD": true, "OPTIONS": true, "TRACE": true, "PUT": true, "DELETE": true,
		"POST": false, "PATCH": false, "CONNECT": false, "get": false, "PROPFIND": false, "": false,
	} {
		if got := methodOf([]byte(text)).Idempotent(); got != want {
			t.Errorf("%q: Idempotent() = %v, want %v", text, got, want)
		}
	}
}
