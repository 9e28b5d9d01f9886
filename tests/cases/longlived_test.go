package cases

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// echo answers a WebSocket handshake and sends back what comes.
func echo(x *rig.Exchange) {
	switchProtocols(x)
	io.Copy(x.TCP, x.Stream())
	x.Close()
}

// TestCB78ConfigChurnDoesNotGrowMemory is the case at a sixtieth of its time.
func TestCB78ConfigChurnDoesNotGrowMemory(t *testing.T) {
	const ingresses, sockets, perSecond = 300, 100, 20
	var objects []rig.Object
	change := func(i, n int) rig.Object {
		name := fmt.Sprintf("i%d", i)
		return rig.Ingress("t1", name, rig.R(name+".example.test", fmt.Sprintf("/v%d", n), "Prefix", "a"))
	}
	for i := range ingresses {
		objects = append(objects, change(i, 0))
	}
	w := newWorld(t, "a ws", append(objects, rig.Ingress("t1", "ws", rig.R("ws.example.test", "/", "Prefix", "ws")).
		Annotate(rig.Nginx+"proxy-read-timeout", "3600").Annotate(rig.Nginx+"proxy-send-timeout", "3600")))
	w.pods["ws"].Handle(echo)
	var open []*rig.Client
	for range sockets {
		c := rig.Dial(t, w.Addr)
		c.Send(upgrade("ws.example.test", "/"))
		if m := c.ReadHead(); m.Status != 101 {
			t.Fatalf("handshake: %d", m.Status)
		}
		open = append(open, c)
	}
	first := w.TableVersion()

	n := 0
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	churn := func(d time.Duration) int64 {
		for end := time.Now().Add(d); time.Now().Before(end); n++ {
			<-tick.C
			w.Put(change(n%ingresses, 1+n))
		}
		return w.MustRSS()
	}
	early := churn(15 * time.Second)
	late := churn(45 * time.Second)
	t.Logf("RSS after 15 s: %d KiB, after 60 s: %d KiB, table version %d -> %d", early>>10, late>>10, first, w.TableVersion())
	if late > early+early/20 {
		t.Errorf("RSS grew from %d to %d KiB, want 5 %% at most", early>>10, late>>10)
	}
	if got := w.TableVersion() - first; got < 60 {
		t.Errorf("the table changed %d times in 60 s", got)
	}
	last := n - 1
	w.eventually(fmt.Sprintf("i%d.example.test", last%ingresses), fmt.Sprintf("/v%d", 1+last), "a")
	for i, c := range open {
		c.Send("ping")
		b := make([]byte, 4)
		c.SetReadDeadline(time.Now().Add(rig.Deadline))
		if _, err := io.ReadFull(c.Reader(), b); err != nil || string(b) != "ping" {
			t.Fatalf("WebSocket %d: %q, %v, want its echo", i, b, err)
		}
	}
}

// slow is a world whose route allows 3 s of silence.
func slow(t *testing.T, handler func(*rig.Exchange)) *world {
	t.Helper()
	w := newWorld(t, "a", []rig.Object{rig.Ingress("t1", "i", rig.R("a.example.test", "/", "Prefix", "a")).
		Annotate(rig.Nginx+"proxy-read-timeout", "3").Annotate(rig.Nginx+"proxy-send-timeout", "3")})
	w.pods["a"].Handle(handler)
	return w
}

func TestCB81SilenceBeforeTheHeadGives504(t *testing.T) {
	t.Parallel()
	w := slow(t, func(x *rig.Exchange) { x.Gone(20 * time.Second); x.Close() })
	c := rig.Dial(t, w.Addr)
	start := time.Now()
	c.Send("POST / HTTP/1.1\r\nHost: a.example.test\r\nContent-Length: 0\r\n\r\n")
	m := c.Read("POST")
	if took := time.Since(start); m.Status != 504 || took < 2500*time.Millisecond || took > 4*time.Second {
		t.Errorf("answer %d after %v, want 504 after 3 s", m.Status, took)
	}
}

func TestCB81SilenceInTheMiddleOfAnAnswer(t *testing.T) {
	t.Parallel()
	w := slow(t, func(x *rig.Exchange) {
		x.Write(rig.Lines("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"))
		<-time.After(2 * time.Second) // silence within the limit
		x.Write("5\r\nevent\r\n")
		x.Gone(20 * time.Second)
		x.Close()
	})
	c := rig.Dial(t, w.Addr)
	c.Send(rig.Get("a.example.test", "/"))
	c.ReadHead()
	chunk := make([]byte, len("5\r\nevent\r\n"))
	c.SetReadDeadline(time.Now().Add(rig.Deadline))
	if _, err := io.ReadFull(c.Reader(), chunk); err != nil {
		t.Fatalf("event after 2 s of silence: %v", err)
	}
	start := time.Now()
	rest, err := io.ReadAll(c.Reader())
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatal("the answer is not cut after 10 s of silence")
	}
	if took := time.Since(start); took < 2500*time.Millisecond || took > 4*time.Second || len(rest) != 0 {
		t.Errorf("cut after %v with %q, want after 3 s without another byte", took, rest)
	}
}

func TestCB81TrafficInOneDirectionKeepsATunnelOpen(t *testing.T) {
	t.Parallel()
	var got atomic.Int64
	w := slow(t, func(x *rig.Exchange) {
		switchProtocols(x)
		b := make([]byte, 4)
		for {
			if _, err := io.ReadFull(x.Stream(), b); err != nil {
				x.Close()
				return
			}
			if got.Add(1) == 9 {
				x.Write("done")
			}
		}
	})
	c := rig.Dial(t, w.Addr)
	c.Send(upgrade("a.example.test", "/"))
	c.ReadHead()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for range 9 { // three times the limit, in which the server is silent
		<-tick.C
		c.Send("ping")
	}
	b := make([]byte, 4)
	c.SetReadDeadline(time.Now().Add(2 * time.Second))
	if _, err := io.ReadFull(c.Reader(), b); err != nil || string(b) != "done" {
		t.Errorf("after 9 s: %q, %v, want the tunnel open", b, err)
	}
	start := time.Now()
	c.SetReadDeadline(time.Now().Add(rig.Deadline))
	if rest, err := io.ReadAll(c.Reader()); len(rest) != 0 || time.Since(start) > 5*time.Second {
		t.Errorf("silent tunnel: %q, %v after %v, want it closed after 3 s", rest, err, time.Since(start))
	}
}
