package l7

import (
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/l7/route"
)

// stalled waits until the worker's bytes in and out have not changed for a while:
// whoever sends is held up.
func (b *bed) stalled(t *testing.T) {
	t.Helper()
	var last uint64
	since := time.Now()
	await(t, 4*patience, "nothing moves any more", func() bool {
		s := b.server.Stats().Workers[0]
		if n := s.BytesIn + s.BytesOut; n != last || n == 0 {
			last, since = n, time.Now()
		}
		return time.Since(since) > 300*time.Millisecond
	})
}

// given waits until the worker holds no more buffers than at its start: a trim,
// every 5 s, releases what was not needed since the last.
func (b *bed) given(t *testing.T, start uint64) {
	t.Helper()
	await(t, 20*time.Second, "buffers are released", func() bool { return b.buffered() <= start })
}

func (b *bed) buffered() uint64 { return b.server.Stats().Workers[0].BufferBytes }

// TestClientsThatDoNotReadHoldOneBufferEach: the endpoint waits, nothing is lost,
// and in the end all memory is given back.
func TestClientsThatDoNotReadHoldOneBufferEach(t *testing.T) {
	t.Parallel()
	const clients, size = 8, 24 << 20
	piece := make([]byte, 1<<20)
	e := newEndpoint(t, func(w *wire) {
		if _, ok := w.head(); ok {
			fmt.Fprintf(w.TCPConn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
			for range size / len(piece) {
				w.Write(piece)
			}
		}
	})
	b := serve(t, Config{}, nil, e.addr)
	await(t, patience, "the loop runs", func() bool { return b.buffered() != 0 })
	start := b.buffered()
	var conns []*wire
	for range clients {
		w := b.connect(t)
		w.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
		conns = append(conns, w)
	}
	b.stalled(t)
	// Each had a small one for its request's head, perhaps all at a time.
	if held, most := b.buffered()-start, uint64(clients*(bufferMax+bufferMin)); held < clients*bufferMin || held > most {
		t.Errorf("%d clients that do not read hold %d bytes, want %d at most", clients, held, most)
	}
	for i, w := range conns {
		if _, text := w.answer("GET"); len(text) != size {
			t.Errorf("client %d got %d bytes, want %d", i, len(text), size)
		}
	}
	b.given(t, start)
}

// TestUploadsToAnEndpointThatDoesNotReadHoldOneBufferEach.
func TestUploadsToAnEndpointThatDoesNotReadHoldOneBufferEach(t *testing.T) {
	t.Parallel()
	const clients, size = 8, 24 << 20
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	e := newEndpoint(t, func(w *wire) {
		if _, ok := w.head(); !ok {
			return
		}
		<-held
		n, _ := io.CopyN(io.Discard, w.r, size)
		text := fmt.Sprint(n)
		fmt.Fprintf(w.TCPConn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		w.head()
	})
	t.Cleanup(release)
	b := serve(t, Config{}, func(p *route.Policy) { p.BodyBytesMax = 0 }, e.addr)
	await(t, patience, "the loop runs", func() bool { return b.buffered() != 0 })
	start := b.buffered()
	var conns []*wire
	for range clients {
		w := b.connect(t)
		conns = append(conns, w)
		go func() {
			fmt.Fprintf(w.TCPConn, "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: %d\r\n\r\n", size)
			w.Write(make([]byte, size))
		}()
	}
	b.stalled(t)
	if held := b.buffered() - start; held < clients*bufferMin || held > clients*bufferMax {
		t.Errorf("%d uploads that nobody reads hold %d bytes, want %d at most", clients, held, clients*bufferMax)
	}
	release()
	for i, w := range conns {
		if _, text := w.answer("POST"); text != fmt.Sprint(size) {
			t.Errorf("of upload %d %s bytes arrived, want %d", i, text, size)
		}
	}
	b.given(t, start)
}
