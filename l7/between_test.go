package l7

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/l7/http1"
	"github.com/weirproxy/weir/l7/route"
	"github.com/weirproxy/weir/l7/upstream"
)

// between returns an exchange between two connected sockets, of a worker that
// doesn't run.
func between(t *testing.T) *exchange {
	x, _ := betweenFor(t)
	return x
}

// betweenFor returns the client's end too.
func betweenFor(t *testing.T) (x *exchange, far int) {
	t.Helper()
	s := &Server{}
	w, err := newWorker(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	fds := []int{}
	for range 2 {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, pair[0], pair[1])
	}
	t.Cleanup(func() {
		for _, fd := range append(fds, int(w.epfd), int(w.wakefd)) {
			unix.Close(fd)
		}
	})
	p := route.DefaultPolicy()
	p.ReadTimeout = time.Second
	c := &client{w: w, fd: int32(fds[0]), registered: true, writable: true}
	b := &backend{w: w, fd: int32(fds[2]), writable: true, peer: new(upstream.Peer)}
	x = w.newExchange(c)
	x.policy, x.b, c.x, b.x = &p, b, x, x
	c.timer.owner = c
	return x, fds[1]
}

// TestATunnelIsIdleWhenBothSidesAre: a client that takes what was kept for it
// keeps its tunnel, though the endpoint is silent.
func TestATunnelIsIdleWhenBothSidesAre(t *testing.T) {
	x := between(t)
	x.phase, x.b4, x.c.at, x.w.now = tunnelled, 1000, 1900, 2500
	if x.expired(); x.c.mode == clientClosed {
		t.Fatal("closed 600 ms after the last byte, want 1 s")
	}
	if x.timer.at != 2900 {
		t.Errorf("looked at again at %d ms, want 2900", x.timer.at)
	}
}

// TestARequestIsSentOnce: the endpoint's time starts with the last byte of the
// request and not with a later event.
func TestARequestIsSentOnce(t *testing.T) {
	x := between(t)
	x.received = true
	x.out.append(&x.w.buffers, []byte("request"))
	x.w.micro = 1000
	x.flushUp()
	x.w.micro = 9000
	x.flushUp()
	if x.sentAt != 1000 {
		t.Errorf("sent at %d µs, want 1000", x.sentAt)
	}
}

// TestASlowBodyIsRefused: the rate counts when the client has sent something.
func TestASlowBodyIsRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		waited int64
		want   int
	}{
		{"in its grace", slowGrace - 1, 0},
		{"after it", slowGrace + 2000, 408},
	} {
		x, far := betweenFor(t)
		x.request.Init(http1.BodyLength, 100)
		x.w.now = 100_000
		x.waitFrom, x.c.at, x.c.readable = x.w.now-c.waited, x.w.now, true
		unix.Write(far, []byte("x"))
		if x.readBody(); x.status != c.want {
			t.Errorf("%s: answer %d, want %d (0: none yet)", c.name, x.status, c.want)
		}
	}
}
