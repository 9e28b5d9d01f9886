package main

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Opcodes of WebSocket frames (RFC 6455, 5.2).
const (
	wsText  = 1
	wsClose = 8
	wsPing  = 9
	wsPong  = 10
)

// wsFrameMax is the most bytes of a frame that the demo echoes.
const wsFrameMax = 64 << 10

// webSocket says hello and then sends back each frame that it receives.
func (b *backend) webSocket(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Sec-WebSocket-Key")
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") || key == "" {
		w.Header().Set("Upgrade", "websocket")
		http.Error(w, "this page is a WebSocket", http.StatusUpgradeRequired)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "the connection can't be taken over", http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	defer context.AfterFunc(r.Context(), func() { conn.Close() })()
	conn.SetDeadline(time.Now().Add(time.Hour))
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455, 4.2.2
	fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
	writeFrame(rw.Writer, wsText, []byte("hello from backend "+b.name+"; what you send comes back\n"))
	for rw.Flush() == nil {
		op, payload, err := readFrame(rw.Reader)
		if err != nil {
			return
		}
		switch op {
		case wsPong:
		case wsPing:
			writeFrame(rw.Writer, wsPong, payload)
		case wsClose:
			writeFrame(rw.Writer, wsClose, payload)
			rw.Flush()
			return
		default:
			writeFrame(rw.Writer, op, payload)
		}
	}
}

// writeFrame adds a whole frame to w, whose Flush reports errors.
func writeFrame(w *bufio.Writer, op byte, payload []byte) {
	w.WriteByte(0x80 | op)
	switch n := len(payload); {
	case n < 126:
		w.WriteByte(byte(n))
	case n < 1<<16:
		w.Write(binary.BigEndian.AppendUint16([]byte{126}, uint16(n)))
	default:
		w.Write(binary.BigEndian.AppendUint64([]byte{127}, uint64(n)))
	}
	w.Write(payload)
}

// readFrame returns the next whole frame of a client. Messages in several frames
// and frames over wsFrameMax are more than a demo needs: an error.
func readFrame(r *bufio.Reader) (op byte, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	op = head[0] & 0x0f
	if head[0]&0xf0 != 0x80 || op == 0 || head[1]&0x80 == 0 {
		return 0, nil, fmt.Errorf("not a whole, masked frame")
	}
	n := uint64(head[1] & 0x7f)
	if n >= 126 {
		wide := make([]byte, 8)
		if n == 126 {
			_, err = io.ReadFull(r, wide[6:])
		} else {
			_, err = io.ReadFull(r, wide)
		}
		if err != nil {
			return 0, nil, err
		}
		n = binary.BigEndian.Uint64(wide)
	}
	if n > wsFrameMax {
		return 0, nil, fmt.Errorf("frame of %d bytes, want at most %d", n, wsFrameMax)
	}
	masked := make([]byte, 4+n)
	if _, err := io.ReadFull(r, masked); err != nil {
		return 0, nil, err
	}
	payload = masked[4:]
	for i := range payload {
		payload[i] ^= masked[i%4]
	}
	return op, payload, nil
}
