package l7

import (
	"time"

	"github.com/weirproxy/weir/l7/http1"
)

// clientWriteMilli is how long a client may take nothing of an answer: nginx's
// send_timeout.
const clientWriteMilli = 60_000

// dateLine caches the Date field of the current second.
type dateLine struct {
	second int64
	line   []byte
}

// dateField returns "Date: ...\r\n" (RFC 9110, 6.6.1).
func (w *Worker) dateField() []byte {
	if second := w.now / 1000; w.date.line == nil || second != w.date.second {
		w.date.second = second
		now := time.Now().UTC() // not from epoch: the clock may have been set since
		w.date.line = append(w.date.line[:0], "Date: "...)
		w.date.line = now.AppendFormat(w.date.line, "Mon, 02 Jan 2006 15:04:05 GMT")
		w.date.line = append(w.date.line, crlf...)
	}
	return w.date.line
}

// refuse answers what can't be parsed and closes: where the next message would
// start is unknown.
func (c *client) refuse(err *http1.Error) {
	w := c.w
	w.count(err)
	w.local.unmatched[err.Status/100]++
	w.local.requests++
	c.headAt, c.scanned = 0, 0
	w.log.refused(c, err)
	c.mode = clientLast
	c.unread = true
	c.in.reset(&w.buffers)
	w.wheel.set(&c.timer, w.now+clientWriteMilli)
	c.write(w.ownAnswer(err, true, false))
	c.queue()
}

// ownAnswer returns an answer by Weir itself; valid until the next head is
// written.
func (w *Worker) ownAnswer(err *http1.Error, last, headOnly bool) []byte {
	body := len(err.Text) + 1
	b := http1.AppendStatusLine(w.head[:0], err.Status, []byte(http1.StatusText(err.Status)))
	b = append(b, "server: weir\r\n"...)
	b = append(b, w.dateField()...)
	b = append(b, "Content-Type: text/plain; charset=utf-8\r\nContent-Length: "...)
	b = http1.AppendUint(b, uint64(body))
	b = append(b, crlf...)
	if last {
		b = append(b, "Connection: close\r\n"...)
	}
	b = append(b, crlf...)
	if !headOnly {
		b = append(b, err.Text...)
		b = append(b, '\n')
	}
	w.head = b[:0]
	return b
}

// answer ends the exchange with an answer by Weir itself. If part of one by the
// endpoint has been sent, all that is left is to break off.
func (x *exchange) answer(err *http1.Error) {
	c, w := x.c, x.w
	if x.phase != awaiting {
		x.breakOff()
		return
	}
	x.status = err.Status
	x.log.err = err
	if !x.received || x.minor == 0 {
		x.closeAfter = true
	}
	c.write(w.ownAnswer(err, x.closeAfter, x.method == http1.MethodHead))
	if x.method != http1.MethodHead {
		x.bodyOut = int64(len(err.Text) + 1)
	}
	x.end()
}

// breakOff ends an answer that can't be completed: the connection closes without a
// last chunk, or short of the declared length, so that the client sees it (one
// that speaks HTTP/1.0 and got no length can't). What was received is delivered
// first.
func (x *exchange) breakOff() {
	x.closeAfter = true
	x.log.broken = true
	x.end()
}

// interim passes an informational answer on.
func (x *exchange) interim(r *http1.Response) {
	if x.minor == 0 {
		return // HTTP/1.0 knows none (RFC 9110, 15.2)
	}
	b := http1.AppendStatusLine(x.w.head[:0], r.Status, r.ReasonPhrase)
	for i := range r.Len() {
		if !r.Drop(i) && r.ID(i) != http1.FieldContentLength {
			b = http1.AppendField(b, r.Name(i), r.Value(i))
		}
	}
	b = append(b, crlf...)
	x.w.head = b[:0]
	if r.Status == 100 && x.expect {
		x.expect = false
		x.waitFrom = x.w.now
	}
	x.c.write(b)
}

// finalHead returns the head of the endpoint's answer as the client gets it;
// valid until the next head is written.
func (x *exchange) finalHead(r *http1.Response) []byte {
	w := x.w
	b := http1.AppendStatusLine(w.head[:0], r.Status, r.ReasonPhrase)
	dated := false
	for i := range r.Len() {
		id := r.ID(i)
		if r.Drop(i) || id == http1.FieldContentLength {
			continue
		}
		dated = dated || id == http1.FieldDate
		b = http1.AppendField(b, r.Name(i), r.Value(i))
	}
	if !dated {
		b = append(b, w.dateField()...)
	}
	switch {
	case r.Declared >= 0 && r.Status != 204: // RFC 9110, 8.6
		b = append(b, "Content-Length: "...)
		b = http1.AppendUint(b, uint64(r.Declared))
		b = append(b, crlf...)
	case r.Body != http1.BodyNone && x.framing == asChunked:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	switch {
	case x.closeAfter:
		b = append(b, "Connection: close\r\n"...)
	case x.minor == 0:
		b = append(b, "Connection: keep-alive\r\n"...)
	}
	b = append(b, crlf...)
	w.head = b[:0]
	return b
}

// switchHead returns the 101 that starts a tunnel.
func (x *exchange) switchHead(r *http1.Response) []byte {
	w := x.w
	b := http1.AppendStatusLine(w.head[:0], r.Status, r.ReasonPhrase)
	for i := range r.Len() {
		if !r.Drop(i) && r.ID(i) != http1.FieldContentLength {
			b = http1.AppendField(b, r.Name(i), r.Value(i))
		}
	}
	b = append(b, "Connection: Upgrade\r\nUpgrade: "...)
	b = append(b, r.Upgrade...)
	b = append(b, "\r\n\r\n"...)
	w.head = b[:0]
	return b
}
