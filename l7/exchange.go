package l7

import (
	"unsafe"

	"github.com/weirproxy/weir/l7/http1"
	"github.com/weirproxy/weir/l7/route"
	"github.com/weirproxy/weir/l7/upstream"
)

const (
	triesMax = 32 // endpoints that one request can remember
	dialsMax = 3  // connects under way for one request
	// replayMax bounds the bytes of a request's body that are kept to be sent
	// again. It is one read, so that a body that came with its head always fits.
	replayMax = requestRead
)

// exchange is one request and its answer. It is recycled at the end of the turn
// in which it ended.
type exchange struct {
	w       *Worker
	c       *client // nil once it has ended
	route   *route.Route
	policy  *route.Policy
	cluster *upstream.Cluster

	// the try
	b       *backend // carries it; nil while none is connected
	dials   [dialsMax]*backend
	dialing int
	tried   [triesMax]*upstream.Peer
	peers   int // used entries of tried
	tries   int
	hash    uint64
	firstAt int64 // ms: the first try
	hedgeAt int64 // ms: another connect is started then
	dialEnd int64 // ms: then no connect is waited for any more
	ackLook int64 // ms: when the acknowledgement was looked for
	timer   timer // of the endpoint's side

	lastFault *http1.Error // of the try before
	freeTries int          // tries that did not count
	ejected   bool         // the endpoint of the last try was known not to answer
	fresh     bool         // no pooled connection is used any more

	// the request
	method     http1.Method
	minor      int // the client's version
	closeAfter bool
	trailersOK bool // the client takes trailers
	expect     bool // the client waits for 100 before it sends the body, and got none yet
	upgrade    string
	accept     [28]byte // Sec-WebSocket-Accept that the endpoint must answer
	request    http1.Body
	received   bool // the request is read to its end, and framed into out
	bodyIn     int64
	bodyWaited int64 // ms spent waiting for the client's body
	waitFrom   int64 // ms: since when it is waited for, 0: it is not
	out        queue // for the endpoint; while replay its start is the request's
	sent       int   // bytes at the front of out that the try has written
	replay     bool  // out holds the request from its first byte
	wrote      bool  // the try has written something
	begun      bool  // a byte of the answer came
	// writeBroken: the endpoint takes no more. It may have answered before.
	writeBroken bool
	acked       bool // its request was seen to be acknowledged

	// the answer
	phase         phase
	response      http1.Body
	framing       framing
	informational int
	status        int
	reuse         bool // the endpoint's connection may be kept
	bodyOut       int64
	upDone        bool // of a tunnel: the client has finished, and the endpoint knows
	downDone      bool // the other way round

	// times
	started int64 // µs: first byte of the request
	sentAt  int64 // µs: its last byte was written to the endpoint
	first   int64 // µs from sentAt to the answer's first byte, -1: none yet
	b4      int64 // ms: the last byte that the endpoint took or gave

	log logEntry
}

// phase is how far the answer is.
type phase uint8

const (
	awaiting  phase = iota // no final head yet
	streaming              // the head is sent, the body runs
	tunnelled              // both directions are copied as they are
)

// framing is how the client learns where the body ends.
type framing uint8

const (
	asLength  framing = iota // as declared, or no body at all
	asChunked                // HTTP/1.1, length unknown
	asClose                  // HTTP/1.0, length unknown
)

// text views b as a string for the length of a call.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// end finishes the exchange: it is counted, its buffers go back, the client reads
// on. What the client still has to get lies in c.out.
func (x *exchange) end() {
	w, c := x.w, x.c
	if c == nil {
		return
	}
	x.releaseTry()
	w.active--
	w.wheel.set(&x.timer, 0)
	x.observe()
	c.x = nil
	x.c = nil
	x.out.reset(&w.buffers)
	w.graveyard = append(w.graveyard, x)
	if c.mode == clientClosed {
		return
	}
	c.at = w.now
	if x.closeAfter {
		c.mode = clientLast
		c.unread = !x.received
	}
	if x.closeAfter || c.out.len() > 0 {
		w.wheel.set(&c.timer, w.now+clientWriteMilli)
	}
	c.queue()
}

// cancel ends the exchange because its client went away.
func (x *exchange) cancel() {
	if x.cluster != nil && x.phase != tunnelled {
		x.cluster.Stats.Cancelled.Inc()
	}
	if x.status == 0 {
		x.log.status = statusClientGone
	}
	x.end()
}

// observe counts the finished exchange.
func (x *exchange) observe() {
	w := x.w
	class := x.status / 100
	if x.route == nil {
		w.local.unmatched[class]++
		w.refusedSince = true
	} else {
		s := &x.route.Stats.Shards[w.id]
		s.Status[class].Inc()
		if x.phase != tunnelled {
			s.Latency.Observe(uint32(w.micro - x.started))
		}
	}
	w.log.write(x)
}

func (w *Worker) newExchange(c *client) *exchange {
	var x *exchange
	if n := len(w.spare.exchanges); n > 0 {
		x = w.spare.exchanges[n-1]
		w.spare.exchanges = w.spare.exchanges[:n-1]
	} else {
		x = new(exchange)
	}
	x.w, x.c, x.first = w, c, -1
	x.timer.owner = x
	return x
}

func (w *Worker) recycle(x *exchange) {
	// The timer may still be linked; the wheel lets go of it when it comes by.
	*x = exchange{timer: x.timer, log: logEntry{buf: x.log.buf[:0]}}
	if len(w.spare.exchanges) < 1024 {
		w.spare.exchanges = append(w.spare.exchanges, x)
	}
}
