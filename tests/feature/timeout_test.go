package feature

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/tests/rig"
)

// trickle sends one byte of text every interval until the peer closes or stop
// is.
func trickle(c *rig.Client, text string, interval time.Duration, stop <-chan struct{}) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for i := range text {
		select {
		case <-stop:
			return
		case <-tick.C:
			if c.TrySend(text[i:i+1]) != nil {
				return
			}
		}
	}
}

// took fails unless the time since start lies between low and high.
func took(t *testing.T, start time.Time, low, high time.Duration) {
	t.Helper()
	if d := time.Since(start); d < low || d > high {
		t.Errorf("after %v, want %v to %v", d.Round(time.Millisecond), low, high)
	}
}

// TestAHeadHasATimeToBeComplete: from its first byte to its last, however often a
// byte comes.
func TestAHeadHasATimeToBeComplete(t *testing.T) {
	p := newPool(t, 1, nil, "--client-head-timeout", "300ms")
	for _, c := range []struct{ name, first, rest string }{
		{"silence", "GET / HTTP/1.1\r\nHost: " + host + "\r\n", ""},
		{"a byte every 30 ms", "G", "ET /" + strings.Repeat("x", 200)},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, stop := rig.Dial(t, p.Addr), make(chan struct{})
			defer close(stop)
			start := time.Now()
			client.Send(c.first)
			go trickle(client, c.rest, 30*time.Millisecond, stop)
			m := client.Read("GET")
			if m.Status != 408 || m.Value("Connection") != "close" {
				t.Errorf("answer %d, Connection %q, want 408 and close", m.Status, m.Value("Connection"))
			}
			took(t, start, 290*time.Millisecond, 2*time.Second)
		})
	}
	if n := p.hits()[0]; n != 0 {
		t.Errorf("the endpoint got %d requests, want none", n)
	}
}

// TestTheHeadsTimeBeginsWithItsFirstByte: an idle connection is older than it.
func TestTheHeadsTimeBeginsWithItsFirstByte(t *testing.T) {
	p := newPool(t, 1, nil, "--client-head-timeout", "300ms")
	c := rig.Dial(t, p.Addr)
	for range 2 {
		c.ExpectSilence(400 * time.Millisecond)
		c.Send(rig.Get(host, "/"))
		if m := c.Read("GET"); m.Status != 200 {
			t.Errorf("after a pause -> %d, want 200", m.Status)
		}
	}
}

func TestABodyHasATimeBetweenItsPieces(t *testing.T) {
	p := newPool(t, 1, nil, "--client-body-timeout", "300ms")
	for name, request := range map[string]string{
		"length": rig.Lines("POST / HTTP/1.1", "Host: "+host, "Content-Length: 10") + "abc",
		"chunks": rig.Lines("POST / HTTP/1.1", "Host: "+host, "Transfer-Encoding: chunked") + "3\r\nabc\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan error, 1)
			p.handle(func(x *rig.Exchange) {
				gone <- x.ReadBody()
				x.Close()
			})
			c := rig.Dial(t, p.Addr)
			start := time.Now()
			c.Send(request)
			m := c.Read("POST")
			if m.Status != 408 || m.Value("Connection") != "close" {
				t.Errorf("answer %d, Connection %q, want 408 and close", m.Status, m.Value("Connection"))
			}
			took(t, start, 290*time.Millisecond, 2*time.Second)
			if err := <-gone; !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the endpoint's read of the body: %v, want a reset: it must not take the part for the whole", err)
			}
		})
	}
}

// TestASlowBodyThatComesIsTaken: longer than the timeout in all, never between
// two pieces.
func TestASlowBodyThatComesIsTaken(t *testing.T) {
	p := newPool(t, 1, nil, "--client-body-timeout", "500ms")
	c := rig.Dial(t, p.Addr)
	c.Send(rig.Lines("POST / HTTP/1.1", "Host: "+host, "Content-Length: 20"))
	trickle(c, strings.Repeat("z", 20), 50*time.Millisecond, nil)
	if m := c.Read("POST"); m.Status != 200 {
		t.Errorf("answer %d, want 200", m.Status)
	}
	if got := string(p.backends[0].Last(t).Body); got != strings.Repeat("z", 20) {
		t.Errorf("body %q at the endpoint", got)
	}
}

func TestAnEndpointThatDoesNotTakeTheRequest(t *testing.T) {
	p := newPool(t, 1, settings{"proxy-send-timeout": "1", "proxy-body-size": "0"})
	release := make(chan struct{})
	defer close(release)
	p.handle(func(x *rig.Exchange) {
		<-release
		x.Reset()
	})
	const size = 64 << 20 // far more than all buffers on the way
	c := rig.Dial(t, p.Addr)
	start := time.Now()
	c.Send(rig.Lines("POST / HTTP/1.1", "Host: "+host, "Content-Length: 67108864"))
	sent := make(chan error, 1)
	go func() { sent <- c.TrySend(strings.Repeat("u", size)) }()
	if m := c.Read("POST"); m.Status != 504 || m.Value("Connection") != "close" {
		t.Errorf("answer %d, Connection %q, want 504 and close", m.Status, m.Value("Connection"))
	}
	took(t, start, 900*time.Millisecond, 4*time.Second)
	c.Close()
	if <-sent == nil {
		t.Error("the whole body was taken")
	}
}

// deaf returns a listening address that answers no connect: its backlog is full.
func deaf(t *testing.T) netip.AddrPort {
	t.Helper()
	addr := rig.Free(t)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: addr.Addr().As4(), Port: int(addr.Port())}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		c, err := net.DialTimeout("tcp", addr.String(), 200*time.Millisecond)
		if err != nil {
			var timeout net.Error
			if !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Fatal(err)
			}
			return addr
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("a backlog of 0 takes eight connections")
	return addr
}

func TestAnEndpointThatAnswersNoConnect(t *testing.T) {
	for _, c := range []struct {
		timeout   string
		low, high time.Duration
	}{{"100ms", 90 * time.Millisecond, 900 * time.Millisecond}, {"1", 950 * time.Millisecond, 3 * time.Second}} {
		t.Run(c.timeout, func(t *testing.T) {
			a := rig.StartAgent(t, service(settings{"proxy-connect-timeout": c.timeout}, deaf(t)), "--workers", "1")
			a.IdleAtEnd()
			start := time.Now()
			if m := rig.Do(t, a.Addr, "GET", rig.Get(host, "/")); m.Status != 504 {
				t.Errorf("answer %d, want 504", m.Status)
			}
			took(t, start, c.low, c.high)
		})
	}
}

// TestAnotherEndpointIsAskedBesideOneThatAnswersNoConnect, for a POST too:
// nothing of it was sent.
func TestAnotherEndpointIsAskedBesideOneThatAnswersNoConnect(t *testing.T) {
	good := rig.NewRecorder(t, "good")
	a := rig.StartAgent(t, service(nil, deaf(t), good.Addr), "--workers", "1")
	a.IdleAtEnd()
	start := time.Now()
	for i := range 4 {
		if m := rig.Do(t, a.Addr, "POST", post("POST", "/", "hello")); m.Status != 200 {
			t.Errorf("POST %d -> %d, want 200", i, m.Status)
		}
	}
	took(t, start, 0, 2*time.Second)
	if n := len(good.Requests()); n != 4 {
		t.Errorf("the endpoint got %d requests, want 4", n)
	}
	if n := a.Metric("weir_upstream_retries_total"); n == 0 {
		t.Error("the endpoint that does not answer was never tried")
	}
}

// TestTheTriesOfARequestHaveATime: an endpoint takes 400 ms to break.
func TestTheTriesOfARequestHaveATime(t *testing.T) {
	for _, c := range []struct {
		timeout string
		tries   int
	}{{"0", 3}, {"300ms", 1}, {"600ms", 2}} {
		t.Run(c.timeout, func(t *testing.T) {
			p := newPool(t, 4, settings{"proxy-next-upstream-timeout": c.timeout})
			p.handle(func(x *rig.Exchange) {
				<-time.After(400 * time.Millisecond)
				x.Reset()
			})
			if m := rig.Do(t, p.Addr, "GET", rig.Get(host, "/")); m.Status != 502 {
				t.Errorf("answer %d, want 502", m.Status)
			}
			sum := 0
			for _, n := range p.hits() {
				sum += n
			}
			if sum != c.tries {
				t.Errorf("proxy-next-upstream-timeout %s: %d tries, want %d", c.timeout, sum, c.tries)
			}
		})
	}
}

// TestRequestsMaxEndsAConnectionPolitely: its last answer says so, and none of
// the answers is lost though the client has sent on.
func TestRequestsMaxEndsAConnectionPolitely(t *testing.T) {
	p := newPool(t, 1, nil, "--requests-max", "3")
	for name, pipelined := range map[string]bool{"in turn": false, "pipelined": true} {
		t.Run(name, func(t *testing.T) {
			p.forget()
			c := rig.Dial(t, p.Addr)
			if pipelined {
				c.Send(strings.Repeat(rig.Get(host, "/"), 5))
			}
			for i := range 3 {
				if !pipelined {
					c.Send(rig.Get(host, "/"))
				}
				want := ""
				if i == 2 {
					want = "close"
				}
				m := c.Read("GET")
				if m.Status != 200 || string(m.Body) != "b0" || m.Value("Connection") != want {
					t.Errorf("request %d -> %d %q, Connection %q, want 200 b0 and %q", i, m.Status, m.Body, m.Value("Connection"), want)
				}
			}
			if m, err := c.TryRead("GET", 2*time.Second); err != io.EOF {
				t.Errorf("after the last answer: %+v, %v, want the end of the stream", m, err)
			}
			if n := p.hits()[0]; n != 3 {
				t.Errorf("the endpoint got %d requests, want 3", n)
			}
		})
	}
}
