package l7

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/l7/http1"
	"github.com/weirproxy/weir/l7/route"
)

// TestAnUnaskedAnswerGoesToNobody: it lies in an idle connection when the next
// request looks for one.
func TestAnUnaskedAnswerGoesToNobody(t *testing.T) {
	conns := make(chan *wire, 10)
	e := newEndpoint(t, func(w *wire) {
		conns <- w
		hello("mine")(w)
	})
	var k brake
	b := serveWith(t, Config{}, nil, func(s *Server) { k.fit(t, s) }, e.addr)
	w := b.connect(t)
	w.get()
	idle := <-conns
	await(t, patience, "the connection idles", func() bool { return b.server.Stats().Workers[0].UpstreamIdle == 1 })
	k.during(func() {
		w.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n") // is first in the batch
		io.WriteString(idle.TCPConn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray")
	})
	if r, text := w.answer("GET"); r.StatusCode != 200 || text != "mine" {
		t.Errorf("answer %d %q, want mine", r.StatusCode, text)
	}
}

// TestAnAnswerThatComesWithTheConnect: an endpoint may answer before it was asked,
// as one that is overloaded does, and all of that is one event.
func TestAnAnswerThatComesWithTheConnect(t *testing.T) {
	addr, fd, fill := hangingSocket(t)
	var k brake
	b := serveWith(t, Config{}, func(p *route.Policy) { p.ReadTimeout = 2 * time.Second }, func(s *Server) { k.fit(t, s) }, addr)
	w := b.connect(t)
	w.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
	await(t, patience, "the connect hangs", func() bool { return b.server.Stats().Workers[0].UpstreamOpen == 1 })
	k.during(func() {
		for {
			c, from, err := unix.Accept4(fd, unix.SOCK_CLOEXEC) // Weir's SYN is sent again after a second
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { unix.Close(c) })
			if fill[from.(*unix.SockaddrInet4).Port] {
				continue
			}
			unix.Write(c, []byte("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy"))
			unix.Shutdown(c, unix.SHUT_WR)
			return
		}
	})
	start := time.Now()
	if r, text := w.answer("GET"); r.StatusCode != 503 || text != "busy" {
		t.Errorf("answer %d %q, want the endpoint's 503", r.StatusCode, text)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestBytesBehindTheLastRequestLoseNoAnswer: the client was never waited for, so
// no event told of them.
func TestBytesBehindTheLastRequestLoseNoAnswer(t *testing.T) {
	for _, behind := range []string{"\r\n", "x", strings.Repeat("y", 1000)} {
		asked, answer := make(chan struct{}), make(chan struct{})
		e := newEndpoint(t, func(w *wire) {
			if _, ok := w.head(); !ok {
				return
			}
			asked <- struct{}{}
			<-answer
			io.WriteString(w.TCPConn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole")
		})
		var k brake
		b := serveWith(t, Config{}, nil, func(s *Server) { k.fit(t, s) }, e.addr)
		for range 5 {
			var w *wire
			k.during(func() { // the request is there when the connection is accepted
				w = b.connect(t)
				w.send("GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
			})
			<-asked
			k.during(func() {
				w.send(behind)
				answer <- struct{}{}
				time.Sleep(10 * time.Millisecond)
			})
			await(t, patience, "the connection closes or lingers", func() bool { return b.server.Stats().Workers[0].Active == 0 })
			if r, text := w.answer("GET"); r.StatusCode != 200 || text != "whole" {
				t.Errorf("%.5q behind: answer %d %q", behind, r.StatusCode, text)
			}
			w.ended()
			w.Close()
		}
	}
}

// TestOneClientDoesNotKeepItsWorker: what it has sent ahead is served over many
// turns, between which the others have theirs.
func TestOneClientDoesNotKeepItsWorker(t *testing.T) {
	const requests = 2000
	var k brake
	b := serveWith(t, Config{}, nil, func(s *Server) { k.fit(t, s) }) // no endpoint: each is answered at once
	w := b.connect(t)
	w.get()
	before := b.server.Stats().Workers[0].Turns
	k.during(func() { w.send(strings.Repeat("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", requests)) })
	for range requests {
		w.answer("GET")
	}
	turns := b.server.Stats().Workers[0].Turns - before
	if least := uint64(requests * requestCost / turnBytes); turns < least {
		t.Errorf("%d requests in %d turns, want %d or more", requests, turns, least)
	}
}

// TestAClientThatGoesOnTakesNoStaleConnection: what the batch says of an idle
// connection counts before a client that had to wait for its turn takes it.
func TestAClientThatGoesOnTakesNoStaleConnection(t *testing.T) {
	conns := make(chan *wire, 10)
	e := newEndpoint(t, func(w *wire) {
		conns <- w
		hello("mine")(w)
	})
	var k brake
	b := serveWith(t, Config{}, nil, func(s *Server) { k.fit(t, s) }, e.addr)
	b.only(t, "a.example")
	w := b.connect(t)
	w.get()
	idle := <-conns
	await(t, patience, "the connection idles", func() bool { return b.server.Stats().Workers[0].UpstreamIdle == 1 })
	const refused = turnBytes/requestCost + 4 // a few are left for the next turn
	k.during(func() {
		w.send(strings.Repeat("GET / HTTP/1.1\r\nHost: nobody.example\r\n\r\n", refused) + "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
		k.pull() // behind the client in the next batch
	})
	<-k.stopped // the client has had its share
	io.WriteString(idle.TCPConn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray")
	k.goOn <- struct{}{}
	for range refused {
		if r, _ := w.answer("GET"); r.StatusCode != 404 {
			t.Fatalf("answer %d, want 404", r.StatusCode)
		}
	}
	if r, text := w.answer("GET"); r.StatusCode != 200 || text != "mine" {
		t.Errorf("answer %d %q, want mine", r.StatusCode, text)
	}
}

// lookout is a handler that looks when its event comes.
type lookout struct{ look func() }

func (l lookout) event(uint32) { l.look() }

// TestABatchIsReadBeforeItIsActedUpon: whoever comes first in it already knows which
// connections to endpoints have ended.
func TestABatchIsReadBeforeItIsActedUpon(t *testing.T) {
	for _, ev := range []uint32{unix.EPOLLIN, unix.EPOLLIN | unix.EPOLLRDHUP, unix.EPOLLHUP | unix.EPOLLERR} {
		x := between(t)
		w, busy := x.w, x.b
		x.phase, x.framing = streaming, asLength
		x.response.Init(http1.BodyLength, 100)
		fd, err := unix.Eventfd(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		idle := &backend{w: w, fd: int32(fd), peer: busy.peer} // closes it
		looked := false
		const at = 900
		w.dispatch([]event{
			{Events: unix.EPOLLIN, Fd: at, Pad: int32(w.attach(at, lookout{func() {
				looked = true
				if !busy.readable || busy.fin != (ev != unix.EPOLLIN) {
					t.Errorf("events %#x: readable %v, ended %v", ev, busy.readable, busy.fin)
				}
				if !idle.closed {
					t.Errorf("events %#x: the idle connection can still be taken", ev)
				}
			}}))},
			{Events: ev, Fd: idle.fd, Pad: int32(w.attach(idle.fd, idle))},
			{Events: ev, Fd: busy.fd, Pad: int32(w.attach(busy.fd, busy))},
		})
		if !looked {
			t.Error("the first event was not handed out")
		}
	}
}

// TestIdleConnectionsMakeWay: when descriptors are short, for new clients and for
// endpoints without an idle connection.
func TestIdleConnectionsMakeWay(t *testing.T) {
	const endpoints, clients, descriptors = 12, 5, 10
	var addrs []string
	for i := range endpoints {
		addrs = append(addrs, newEndpoint(t, hello(fmt.Sprint(i))).addr)
	}
	b := serveWith(t, Config{}, nil, func(s *Server) { s.clientsMax, s.descriptorsMax = clients, descriptors }, addrs...)
	var conns []*wire
	for range clients {
		conns = append(conns, b.connect(t))
	}
	for i := range 3 * endpoints {
		if r, _ := conns[i%clients].get(); r.StatusCode != 200 {
			t.Fatalf("request %d: answer %d, want 200", i, r.StatusCode)
		}
		if s := b.server.Stats().Workers[0]; s.Connections+s.UpstreamOpen > descriptors {
			t.Fatalf("%d clients and %d connections to endpoints, want %d together at most", s.Connections, s.UpstreamOpen, descriptors)
		}
	}
	for _, c := range conns {
		c.Close()
	}
	for i := range clients {
		if r, _ := b.connect(t).get(); r.StatusCode != 200 {
			t.Errorf("new client %d: answer %d, want 200", i, r.StatusCode)
		}
	}
	if n := b.server.Stats().Workers[0].Evicted; n == 0 {
		t.Error("no connection made way")
	}
}
