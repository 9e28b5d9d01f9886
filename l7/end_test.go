package l7

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
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

// TestRequestsOfARouteThatWentAreLookedAfter: their endpoint died, and no slice will
// tell.
func TestRequestsOfARouteThatWentAreLookedAfter(t *testing.T) {
	asked := make(chan struct{}, 1)
	e := newEndpoint(t, func(w *wire) {
		w.head()
		asked <- struct{}{}
		w.head() // never answers
	})
	b := serve(t, Config{}, nil, e.addr)
	w := b.connect(t)
	w.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
	<-asked
	e.l.Close() // a probe is refused
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

func TestHeadsMustFitABuffer(t *testing.T) {
	for _, l := range []Limits{{HeadBytesMax: HeadBytesCap + 1}, {ResponseHeadBytesMax: HeadBytesCap + 1}} {
		_, err := New(Config{Addresses: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}, Workers: 1, Limits: l,
			Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			t.Errorf("limits %+v are taken", l)
		}
	}
}
