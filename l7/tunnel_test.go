package l7

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/l7/route"
)

// TestTheFirstBytesOfATunnelArrive: though the client sent some ahead, which the
// endpoint, gone already, answers with a reset.
func TestTheFirstBytesOfATunnelArrive(t *testing.T) {
	e := newEndpoint(t, func(w *wire) {
		if _, ok := w.head(); !ok {
			return
		}
		io.WriteString(w.TCPConn, switched+"hello-hello")
		w.CloseWrite()
		w.reset()
	})
	b := serve(t, Config{}, nil, e.addr)
	for n := range 30 {
		w := b.connect(t)
		w.send(upgradeRequest + strings.Repeat("early", n*100))
		w.SetReadDeadline(time.Now().Add(patience))
		if head, ok := w.head(); !ok || !strings.HasPrefix(head, "HTTP/1.1 101") {
			continue // the reset came before the switch was read: that is a 502
		}
		text, err := io.ReadAll(w.r)
		if err == nil && string(text) != "hello-hello" {
			t.Errorf("try %d: the tunnel ended in order after %q", n, text)
		}
	}
}

// TestATunnelToAProcessThatEndedIsClosed: it closed its socket, so what the client
// sends is answered with a reset.
func TestATunnelToAProcessThatEndedIsClosed(t *testing.T) {
	e := newEndpoint(t, func(w *wire) {
		w.head()
		io.WriteString(w.TCPConn, switched)
	})
	b := serve(t, Config{}, nil, e.addr)
	w := b.connect(t)
	w.send(upgradeRequest)
	w.head()
	w.ended() // the endpoint's end is passed on
	w.send("x")
	await(t, patience, "the tunnel closes", func() bool { return b.server.Stats().Workers[0].UpstreamOpen == 0 })
}

// TestAnEndpointThatCameMeanwhileIsAsked: one that was tried and left does not count.
func TestAnEndpointThatCameMeanwhileIsAsked(t *testing.T) {
	asked, replaced := make(chan struct{}), make(chan struct{})
	old := newEndpoint(t, func(w *wire) {
		if _, ok := w.head(); !ok {
			return // a probe, when it has left
		}
		asked <- struct{}{}
		<-replaced
		io.WriteString(w.TCPConn, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
		w.head()
	})
	fresh := newEndpoint(t, hello("fresh"))
	b := serve(t, Config{}, func(p *route.Policy) { p.RetryOn |= route.OnStatus(503) }, old.addr)
	w := b.connect(t)
	w.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
	<-asked
	b.endpoints(fresh.addr)
	close(replaced)
	if r, text := w.answer("GET"); r.StatusCode != 200 || text != "fresh" {
		t.Errorf("answer %d %q, want that of the endpoint that came", r.StatusCode, text)
	}
}
