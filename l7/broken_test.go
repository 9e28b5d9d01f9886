package l7

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/l7/route"
)

const upgradeRequest = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n"

const switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n"

// reset closes w with RST.
func (w *wire) reset() {
	w.SetLinger(0)
	w.Close()
}

// TestAClientThatLeavesBeforeItsSwitch: the 101 finds nobody.
func TestAClientThatLeavesBeforeItsSwitch(t *testing.T) {
	asked, left := make(chan struct{}, 1), make(chan struct{})
	e := newEndpoint(t, func(w *wire) {
		head, ok := w.head()
		if !ok {
			return
		}
		if !strings.Contains(head, "Upgrade") {
			io.WriteString(w.TCPConn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			return
		}
		asked <- struct{}{}
		<-left
		io.WriteString(w.TCPConn, switched)
		io.Copy(io.Discard, w.r)
	})
	b := serve(t, Config{}, nil, e.addr)
	w := b.connect(t)
	w.send(upgradeRequest)
	<-asked
	w.reset()
	close(left)
	await(t, patience, "both connections close", func() bool {
		s := b.server.Stats().Workers[0]
		return s.Connections == 0 && s.UpstreamOpen == 0
	})
	if r, _ := b.connect(t).get(); r.StatusCode != 200 {
		t.Errorf("afterwards a request is answered %d, want 200", r.StatusCode)
	}
}

// TestAnAnswerThatWasCutIsNotWhole: the endpoint resets while the request's body
// still runs to it, so that the write learns of it and the read sees a plain end.
func TestAnAnswerThatWasCutIsNotWhole(t *testing.T) {
	e := newEndpoint(t, func(w *wire) {
		if _, ok := w.head(); !ok {
			return
		}
		io.WriteString(w.TCPConn, "HTTP/1.1 200 OK\r\n\r\npart")
		time.Sleep(50 * time.Millisecond) // until the upload is stuck
		w.reset()
	})
	b := serve(t, Config{}, func(p *route.Policy) { p.BodyBytesMax = 0 }, e.addr)
	for range 5 {
		w := b.connect(t)
		w.send("POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1000000000\r\n\r\n")
		stop := make(chan struct{})
		var sending sync.WaitGroup
		sending.Go(func() {
			piece := make([]byte, 16<<10)
			for {
				select {
				case <-stop:
					return
				default:
				}
				w.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
				w.Write(piece)
			}
		})
		w.SetReadDeadline(time.Now().Add(patience))
		r, err := http.ReadResponse(w.r, &http.Request{Method: "POST"})
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(r.Body); err == nil {
			t.Errorf("the answer %q counts as whole", body)
		}
		close(stop)
		sending.Wait()
	}
}

// TestATunnelEndsWithItsEndpoint: though the client was sending, and nothing of
// that can be delivered any more.
func TestATunnelEndsWithItsEndpoint(t *testing.T) {
	full := make(chan struct{})
	e := newEndpoint(t, func(w *wire) {
		if _, ok := w.head(); !ok {
			return
		}
		io.WriteString(w.TCPConn, switched)
		<-full
		w.reset()
	})
	b := serve(t, Config{}, nil, e.addr)
	w := b.connect(t)
	w.send(upgradeRequest)
	w.head()
	piece := make([]byte, 64<<10)
	for {
		w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := w.Write(piece); err != nil {
			break // the endpoint doesn't read
		}
	}
	close(full)
	await(t, patience, "the tunnel is closed", func() bool {
		w.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
		w.Write(piece[:1])
		s := b.server.Stats().Workers[0]
		return s.UpstreamOpen == 0
	})
	w.Close()
	await(t, patience, "the client's connection is closed", func() bool { return b.server.Stats().Workers[0].Connections == 0 })
}

// TestAPartOfAnAnswerIsNotRepeated: only before its first byte another endpoint
// may be asked.
func TestAPartOfAnAnswerIsNotRepeated(t *testing.T) {
	for _, part := range []string{"H", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"} {
		asked := make(chan struct{}, 10)
		cut := func(w *wire) {
			if _, ok := w.head(); !ok {
				return
			}
			asked <- struct{}{}
			io.WriteString(w.TCPConn, part)
		}
		a, b := newEndpoint(t, cut), newEndpoint(t, cut)
		w := serve(t, Config{}, nil, a.addr, b.addr).connect(t)
		w.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
		r, _ := w.answer("GET")
		if r.StatusCode == 103 {
			r, _ = w.answer("GET")
		}
		if n := len(asked); r.StatusCode != 502 || n != 1 {
			t.Errorf("after %q: answer %d after %d tries, want 502 after one", part, r.StatusCode, n)
		}
	}
}

// TestARefusedBodyEndsItsConnection: from a fault in a body on, nobody knows where
// the next request starts; what looks like one in there is none.
func TestARefusedBodyEndsItsConnection(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	e := newEndpoint(t, func(w *wire) {
		for {
			head, ok := w.head()
			if !ok {
				return
			}
			mu.Lock()
			seen = append(seen, strings.SplitN(head, " HTTP", 2)[0])
			mu.Unlock()
			if !strings.Contains(head, "/outer") { // that one's body never comes whole
				io.WriteString(w.TCPConn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		}
	})
	const inner = "GET /inner HTTP/1.1\r\nHost: a.example\r\n\r\n"
	// within makes a chunk of size bytes in which, at every place where a decoder
	// may think that the chunk ends, a request starts.
	within := func(at, size int) string {
		s := strings.Repeat("A", at) + "\r\n0\r\n\r\n" + inner
		return s + strings.Repeat("B", size-len(s))
	}
	for _, c := range []struct {
		name, body string
		limit      int64
		want       int
	}{
		{"part of a chunk over the limit", "400\r\n" + within(0x100-5, 0x400)[:0x300], 100, 413},
		{"whole body over the limit", "c8\r\n" + strings.Repeat("A", 200) + "\r\n0\r\n\r\n" + inner, 100, 413},
		{"NUL in an extension", "100\r\n" + within(0x20, 0x100) + "\r\n20;\x00", 0, 400},
		{"LF in an extension", "100\r\n" + within(0x20, 0x100) + "\r\n20;a\nb", 0, 400},
		{"space behind a size", "3000\r\n" + within(0x2, 0x3000) + "\r\n2 \r\n", 0, 400},
		{"no size", "5\r\nhello\r\n\r\n" + inner, 0, 400},
		{"no end of a chunk", "5\r\nhello" + inner, 0, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			mu.Lock()
			seen = nil
			mu.Unlock()
			b := serve(t, Config{}, func(p *route.Policy) { p.BodyBytesMax = c.limit }, e.addr)
			for _, together := range []bool{true, false} {
				w := b.connect(t)
				head := "POST /outer HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"
				if !together {
					w.send(head)
					await(t, patience, "the head is read", func() bool { return b.server.Stats().Workers[0].Active == 1 })
					head = ""
				}
				w.send(head + c.body)
				if r, _ := w.answer("POST"); r.StatusCode != c.want || !r.Close {
					t.Errorf("together %v: answer %d, close %v; want %d and close", together, r.StatusCode, r.Close, c.want)
				}
				w.ended()
			}
			mu.Lock()
			defer mu.Unlock()
			if s := fmt.Sprint(seen); strings.Contains(s, "/inner") {
				t.Errorf("the endpoint saw %s", s)
			}
		})
	}
}
