package l7

import (
	"github.com/weirproxy/weir/l7/http1"
	"github.com/weirproxy/weir/l7/route"
)

// informationalMax bounds the 1xx answers before the final one.
const informationalMax = 16

// joinMax is the size up to which a body is copied behind its head, so that one
// write without a vector sends both.
const joinMax = 4 << 10

// resumeDown continues the answer: the endpoint has sent something, or the client
// takes something.
func (x *exchange) resumeDown() {
	x.b4 = x.w.now
	if x.phase == tunnelled {
		x.copyDown()
	} else {
		x.pumpDown()
	}
	x.arm()
}

// pumpDown moves the answer from the endpoint to the client until one of them
// blocks.
func (x *exchange) pumpDown() {
	w := x.w
	for x.c != nil && x.b != nil && x.c.out.len() == 0 && x.phase != tunnelled {
		b := x.b
		data, scratch := b.in.bytes(), false
		if len(data) == 0 || b.more {
			if !b.readable {
				return
			}
			if w.spent() {
				x.c.yield()
				return
			}
			n := 0
			switch {
			case len(data) == 0:
				scratch = true
				n = b.read(w.down)
				data = w.down[:max(n, 0)]
			case b.in.room(&w.buffers, bufferMin):
				n = b.read(b.in.buf[b.in.end:])
				b.in.end += max(n, 0)
				data = b.in.bytes()
			default: // the head's own limit is lower
				x.fail(errReset, route.RetryInvalidHead)
				return
			}
			if n < 0 {
				x.answerEnds(n == -1)
				return
			}
			if n == 0 {
				return
			}
			x.b4 = w.now
			x.begun = true
		}
		n, done := x.takeAnswer(data)
		if x.c == nil || x.b != b {
			return
		}
		b.more = !done && n == 0
		if done {
			if n < len(data) {
				x.reuse = false // bytes that nobody asked for
			}
			b.in.reset(&w.buffers)
			x.end()
			return
		}
		if scratch {
			b.in.append(&w.buffers, data[n:])
		} else {
			b.in.consume(&w.buffers, n)
		}
	}
	if x.c != nil && x.phase == tunnelled {
		if x.copyDown(); x.c != nil {
			x.copyUp()
		}
	}
}

// takeAnswer consumes data from the endpoint: n bytes, 0 if a head or a trailer
// section is incomplete. done: the answer is complete.
func (x *exchange) takeAnswer(data []byte) (n int, done bool) {
	if x.phase == streaming {
		return x.takeAnswerBody(nil, data)
	}
	w := x.w
	r := &w.response
	n, err := r.Parse(data, x.method, &w.server.responseLimits)
	if err != nil {
		x.fail(err, route.RetryInvalidHead)
		return 0, false
	}
	if n == 0 {
		return 0, false
	}
	switch {
	case r.Status == 101:
		if !x.switches(r) {
			x.fail(errUpgrade, route.RetryInvalidHead)
			return 0, false
		}
		x.startTunnel(r)
		return n, false
	case r.Status < 200:
		if x.informational++; x.informational > informationalMax {
			x.fail(errInformational, route.RetryInvalidHead)
			return 0, false
		}
		x.interim(r)
		return n, false
	}
	if cond := route.OnStatus(r.Status); x.policy.RetryOn&cond != 0 && x.elsewhere(cond) {
		return 0, false
	}
	x.startAnswer(r)
	m, done := x.takeAnswerBody(r, data[n:])
	return n + m, done
}

// elsewhere repeats the request because of the answer's status, if it may and
// there is another endpoint, and reports whether it did.
func (x *exchange) elsewhere(cond route.RetryOn) bool {
	k := x.cluster
	if !x.repeatable() || !k.Left(x.tried[:x.peers]) || !x.another(cond) {
		return false
	}
	k.Stats.Retries.Inc()
	x.dropTry()
	x.lastFault = errStatus
	x.try()
	x.arm()
	return true
}

// startAnswer fixes how the answer goes to the client. From here on the request
// is not repeated any more.
func (x *exchange) startAnswer(r *http1.Response) {
	w := x.w
	if x.sentAt != 0 {
		x.first = w.micro - x.sentAt
		x.cluster.Stats.FirstByte.Observe(uint32(x.first))
		if x.policy.Balance == route.EWMA {
			x.b.peer.Observe(float64(x.first), w.now)
		}
	}
	x.phase = streaming
	x.status = r.Status
	x.reuse = !r.Close
	x.response.Init(r.Body, r.Length)
	if x.replay {
		x.replay = false
		x.out.consume(&w.buffers, x.sent)
		x.sent = 0
	}
	if !x.received {
		x.closeAfter = true
	}
	x.closeAfter = x.closeAfter || w.draining
	switch {
	case r.Body != http1.BodyChunked && r.Body != http1.BodyUntilClose:
		x.framing = asLength
	case x.minor == 0:
		x.framing = asClose
		x.closeAfter = true
	default:
		x.framing = asChunked
	}
}

// takeAnswerBody passes body bytes on, behind the head of r if that is not nil.
func (x *exchange) takeAnswerBody(r *http1.Response, data []byte) (int, bool) {
	w, c := x.w, x.c
	payload, n, err := x.response.Decode(data, &w.server.responseLimits)
	if err != nil {
		w.count(errAnswerBody)
		if r != nil { // nothing was sent yet
			x.phase = awaiting
			x.closeAfter = true
			x.dropTry()
			x.answer(errAnswerBody)
			return 0, false
		}
		x.breakOff()
		return 0, false
	}
	w.used += chunkCost * (n - len(payload))
	done := x.response.Done()
	var head, frame, tail []byte
	if r != nil {
		head = x.finalHead(r)
	}
	if x.framing == asChunked {
		if len(payload) > 0 {
			frame = w.chunk[http1.PutChunkHead(w.chunk[:], len(payload)):]
			tail = crlf
		}
		if done {
			tail = x.lastChunk(len(payload) > 0)
		}
	}
	x.bodyOut += int64(len(payload))
	if total := len(head) + len(frame) + len(payload) + len(tail); len(payload) <= joinMax && total <= cap(w.head) {
		// head lies in w.head already, or is empty
		b := append(w.head[:len(head)], frame...)
		b = append(append(b, payload...), tail...)
		c.write(b)
	} else {
		c.write(head, frame, payload, tail)
	}
	return n, done
}

// lastChunk returns what ends a chunked body, with the trailers if the client
// takes them; afterData: a chunk is to be closed first.
func (x *exchange) lastChunk(afterData bool) []byte {
	const end = "\r\n0\r\n\r\n"
	b := x.w.tail[:0]
	if afterData {
		b = append(b, end[:2]...)
	}
	b = append(b, end[2:5]...)
	if x.trailersOK {
		b = append(b, x.response.Trailers()...)
	}
	b = append(b, end[5:]...)
	x.w.tail = b
	return b
}

// answerEnds: the endpoint's stream ended, in order (FIN) or not.
func (x *exchange) answerEnds(orderly bool) {
	if x.phase == awaiting {
		x.fail(errReset, route.RetryError)
		return
	}
	if !orderly || x.response.Kind() != http1.BodyUntilClose {
		x.breakOff()
		return
	}
	if x.framing == asChunked {
		x.c.write(x.lastChunk(false))
	}
	x.reuse = false
	x.end()
}
