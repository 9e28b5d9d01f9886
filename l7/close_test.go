package l7

import (
	"strings"
	"testing"

	"github.com/weirproxy/weir/l7/route"
)

// TestTheLastAnswerOfAConnectionSaysSo: and then it closes, whatever the client
// has sent behind.
func TestTheLastAnswerOfAConnectionSaysSo(t *testing.T) {
	e := newEndpoint(t, hello("ok"))
	b := serve(t, Config{Limits: Limits{RequestsMax: 3}}, nil, e.addr)
	w := b.connect(t)
	w.send(strings.Repeat("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", 5))
	for i := range 3 {
		if r, _ := w.answer("GET"); r.StatusCode != 200 || r.Close != (i == 2) {
			t.Errorf("answer %d: %d, close %v; want close on the third alone", i+1, r.StatusCode, r.Close)
		}
	}
	w.ended()
	if n := b.server.Stats().Workers[0].Requests; n > 3 {
		t.Errorf("%d requests were served, want 3", n)
	}
}

// TestARefusalReachesAClientThatGoesOnSending: the rest of the body is taken and
// thrown away for a while, else a reset could overtake the answer.
func TestARefusalReachesAClientThatGoesOnSending(t *testing.T) {
	e := newEndpoint(t, hello("ok"))
	b := serve(t, Config{}, func(p *route.Policy) { p.BodyBytesMax = 10 }, e.addr)
	read := func() uint64 { return b.server.Stats().Workers[0].BytesIn }
	w := b.connect(t)
	w.send("POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 100000000\r\n\r\n")
	piece := strings.Repeat("x", 8<<10)
	for range 4 {
		at := read()
		w.send(piece)
		await(t, patience, "the body is taken", func() bool { return read() >= at+uint64(len(piece)) })
	}
	if r, text := w.answer("POST"); r.StatusCode != 413 || !r.Close || !strings.HasSuffix(text, "\n") {
		t.Errorf("answer %d %q, close %v; want a whole 413 and close", r.StatusCode, text, r.Close)
	}
	w.ended() // in order, though more is sent
	for range 4 {
		at := read()
		w.send(piece)
		await(t, patience, "the body is taken after the answer", func() bool { return read() >= at+uint64(len(piece)) })
	}
	w.Close()
	await(t, patience, "the connection closes", func() bool { return b.server.Stats().Workers[0].Connections == 0 })
	if n, _ := e.count(); n != 0 {
		t.Errorf("the endpoint saw %d connections, want none", n)
	}
}
