package l7

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/l7/http1"
	"github.com/weirproxy/weir/l7/route"
)

// TestNothingIsWokenAfterRun: the descriptors that workers are woken by may by then
// be something else.
func TestNothingIsWokenAfterRun(t *testing.T) {
	s, err := New(Config{Addresses: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, Workers: 1,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	wake := s.workers[0].wakefd
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "file")
	for {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if int32(f.Fd()) >= wake {
			break
		}
	}
	s.EndpointsChanged()
	s.Kill()
	if b, err := os.ReadFile(name); err != nil || len(b) != 0 {
		t.Errorf("a file holds %q, %v", b, err)
	}
}

// TestTheEndOfLingeringLosesNothing: what the kernel still has to deliver then is
// delivered.
func TestTheEndOfLingeringLosesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	far, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	near, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	f, err := near.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	near.Close()
	fd, err := unix.Dup(int(f.Fd()))
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	unix.SetNonblock(fd, true)
	sent := 0
	for piece := make([]byte, 64<<10); ; {
		n, err := unix.Write(fd, piece)
		if err != nil {
			break // the kernel holds all it can
		}
		sent += n
	}
	x := between(t)
	c := x.c
	c.fd, c.x, c.mode = int32(fd), nil, clientLinger
	sysShutdownWrite(c.fd)
	c.expired()
	far.SetReadDeadline(time.Now().Add(patience))
	if n, err := io.Copy(io.Discard, far); err != nil || n != int64(sent) {
		t.Errorf("read %d of %d bytes, %v", n, sent, err)
	}
}

// TestChunkFramingCosts: a turn that consists of it ends sooner.
func TestChunkFramingCosts(t *testing.T) {
	x := between(t)
	x.request.Init(http1.BodyChunked, 0)
	x.takeBody(bytes.Repeat([]byte("1\r\na\r\n"), 10_000))
	if !x.w.spent() {
		t.Errorf("10,000 chunks of one byte cost %d, want a turn's worth: %d", x.w.used, turnBytes)
	}
	y := between(t)
	y.request.Init(http1.BodyChunked, 0)
	y.takeBody(append([]byte("f000\r\n"), make([]byte, 0xf000)...))
	if y.w.spent() {
		t.Errorf("one chunk of 60 KiB costs %d", y.w.used)
	}
}

// TestRequestsOfARouteThatWentAreLookedAfter: nothing takes connections at their
// endpoint's address any more, and no slice will tell.
func TestRequestsOfARouteThatWentAreLookedAfter(t *testing.T) {
	fd, addr := tight(t)
	b := serve(t, Config{}, nil, addr)
	w := b.connect(t)
	w.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
	c, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC) // and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(c) })
	fill(t, addr)
	none, err := route.NewTable(2, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	b.server.SetTable(none)
	if r, _ := w.answer("GET"); r.StatusCode != 502 {
		t.Errorf("answer %d, want 502", r.StatusCode)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestWhatRunsOnAnEndpointThatTakesNoMoreFinishes: one that ends in order closes its
// listener first, and leaves its slice.
func TestWhatRunsOnAnEndpointThatTakesNoMoreFinishes(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		for _, how := range []string{"refuses", "is busy"} {
			fd, addr := tight(t)
			b := serve(t, Config{}, nil, addr)
			w := b.connect(t)
			w.send(method + " / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi")
			c, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
			if err != nil {
				t.Fatal(err)
			}
			await(t, patience, "the request has come", func() bool {
				n, _, err := unix.Recvfrom(c, make([]byte, 4096), unix.MSG_PEEK|unix.MSG_DONTWAIT)
				return err == nil && n > 0
			})
			if how == "refuses" {
				unix.Shutdown(fd, unix.SHUT_RD)
			} else if method == "GET" {
				continue // it may be repeated, and is
			} else {
				fill(t, addr)
			}
			b.endpoints()
			time.Sleep(2 * probeMilli * time.Millisecond)
			unix.Write(c, []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
			if r, _ := w.answer(method); r.StatusCode != 200 {
				t.Errorf("%s, the endpoint %s: answer %d, want 200", method, how, r.StatusCode)
			}
			unix.Close(c)
		}
	}
}

// TestAHeadThatGrowsTooLargeIsRefused: with the fields that are added it would leave
// no room for the body.
func TestAHeadThatGrowsTooLargeIsRefused(t *testing.T) {
	e := newEndpoint(t, hello("ok"))
	c := Config{Limits: Limits{HeadBytesMax: HeadBytesCap, LineBytesMax: HeadBytesCap}}
	c.Forwarded.AppendFull = true
	b := serve(t, c, nil, e.addr)
	w := b.connect(t)
	w.send("GET / HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: " + strings.Repeat("1", HeadBytesCap-100) + "\r\n\r\n")
	if r, _ := w.answer("GET"); r.StatusCode != 431 {
		t.Errorf("answer %d, want 431", r.StatusCode)
	}
}

// TestALargeHeadLosesNothingOfTheBodyBehindIt: all of it is there when the head is
// read.
func TestALargeHeadLosesNothingOfTheBodyBehindIt(t *testing.T) {
	const size = 300_000
	e := newEndpoint(t, func(w *wire) {
		for {
			if _, ok := w.head(); !ok {
				return
			}
			n, _ := io.CopyN(io.Discard, w.r, size)
			fmt.Fprintf(w.TCPConn, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n%06d", n)
		}
	})
	var k brake
	b := serveWith(t, Config{Limits: Limits{HeadBytesMax: HeadBytesCap, LineBytesMax: HeadBytesCap}}, nil,
		func(s *Server) { k.fit(t, s) }, e.addr)
	w := b.connect(t)
	for _, head := range []int{60_000, 100_000, 126_000} {
		request := "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: " + strconv.Itoa(size) + "\r\nX: " + strings.Repeat("x", head)
		w.send(request) // without its end, so that all that follows is read behind it
		await(t, patience, "it is read", func() bool { return b.server.Stats().Workers[0].BytesIn >= uint64(head) })
		k.during(func() {
			go w.send("\r\n\r\n" + strings.Repeat("b", size))
			time.Sleep(50 * time.Millisecond)
		})
		if r, text := w.answer("POST"); r.StatusCode != 200 || text != strconv.Itoa(size) {
			t.Errorf("head of %d bytes: answer %d %q, want all %d bytes", head, r.StatusCode, text, size)
		}
	}
}

func TestHeadsMustFitABuffer(t *testing.T) {
	for _, l := range []Limits{{HeadBytesMax: HeadBytesCap + 1}, {ResponseHeadBytesMax: HeadBytesCap + 1}} {
		_, err := New(Config{Addresses: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, Workers: 1, Limits: l,
			Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			t.Errorf("limits %+v are taken", l)
		}
	}
}
