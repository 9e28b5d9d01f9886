package l7

import (
	"github.com/weirproxy/weir/l7/http1"
	"github.com/weirproxy/weir/l7/route"
)

// begin starts the exchange for the request in w.request, whose head is head bytes
// long at the front of data. What follows it there and does not belong to the
// request is kept in c.in (data lies there already if it is not scratch).
func (w *Worker) begin(c *client, data []byte, head int, scratch bool) {
	r := &w.request
	rest := data[head:]
	if len(rest) > replayMax { // out must hold it beside the head; the remainder stays in c.in
		rest = rest[:replayMax]
	}
	x := w.newExchange(c)
	x.log.length = head
	c.x = x
	c.requests++
	w.used += requestCost
	w.local.requests++
	w.active++
	x.started, c.headAt = c.headAt, 0
	x.method, x.minor = r.Method, r.Minor
	x.trailersOK = r.TETrailers
	x.expect = r.Expect100
	x.closeAfter = r.Close || w.draining || w.tired(c)
	x.request.Init(r.Body, r.Length)
	x.received = x.request.Done()
	w.log.note(x, r)

	taken, fault := 0, x.admit(r)
	switch {
	case fault != nil:
		taken = x.skipBody(rest)
	case !x.received && len(rest) > 0:
		// A fault leaves x.received false: the connection ends with the answer, for
		// nobody knows where the next request would start.
		taken, fault = x.takeBody(rest)
		x.expect = false // the client did not wait
	}
	c.keep(data, head+taken, scratch)
	if fault != nil {
		w.count(fault)
		x.answer(fault)
		return
	}
	x.replay = true
	x.firstAt = w.now
	x.try()
	x.arm()
}

// admit finds the route, checks what the policy says of the head, and writes the
// head as the endpoint gets it to out.
func (x *exchange) admit(r *http1.Request) *http1.Error {
	w := x.w
	t := w.server.table.Load()
	if t == nil {
		return errNoTable
	}
	x.route = t.Match(text(r.Host), text(r.Path))
	if x.route == nil {
		return errNoRoute
	}
	x.policy = x.route.Policy
	if limit := x.policy.BodyBytesMax; limit > 0 && r.Body == http1.BodyLength && r.Length > limit {
		return errBodyTooLong
	}
	x.cluster = w.clusters.Get(x.route.Cluster, w.now, w.peerChanged)
	x.cluster.Earn()
	if x.policy.Balance == route.Hash {
		x.hash = x.hashKey(r)
	}
	return x.appendHead(r)
}

// tired reports whether a client's connection ends with this request.
func (w *Worker) tired(c *client) bool {
	l := &w.server.config.Limits
	return l.RequestsMax > 0 && c.requests >= l.RequestsMax || w.now-c.opened >= l.LifetimeMax.Milliseconds()
}

// takeBody decodes body bytes at the front of data into out and returns how many
// it took.
func (x *exchange) takeBody(data []byte) (int, *http1.Error) {
	w := x.w
	payload, n, err := x.request.Decode(data, &w.server.requestLimits)
	if err != nil {
		return 0, err
	}
	w.used += chunkCost * (n - len(payload))
	x.bodyIn += int64(len(payload))
	if limit := x.policy.BodyBytesMax; limit > 0 && x.bodyIn > limit {
		return 0, errBodyTooLong
	}
	chunked := x.request.Kind() == http1.BodyChunked
	done := x.request.Done()
	ok := true
	put := func(p []byte) { ok = ok && x.out.append(&w.buffers, p) }
	if chunked && len(payload) > 0 {
		var head [http1.ChunkHeadMax]byte
		put(head[http1.PutChunkHead(head[:], len(payload)):])
	}
	put(payload)
	if chunked {
		if len(payload) > 0 {
			put(crlf)
		}
		if done {
			put(lastChunk)
			put(x.request.Trailers())
			put(crlf)
		}
	}
	if !ok {
		return 0, errOverflow
	}
	x.received = done
	return n, nil
}

var (
	crlf      = []byte("\r\n")
	lastChunk = []byte("0\r\n")
)

// skipBody drops the body of a refused request, of which nothing was decoded yet,
// and returns how much of rest that was: if it is already here whole, the
// connection can stay.
func (x *exchange) skipBody(rest []byte) int {
	if x.received || x.expect || len(rest) == 0 {
		return 0
	}
	_, n, err := x.request.Decode(rest, &x.w.server.requestLimits)
	if err != nil {
		return 0
	}
	x.received = x.request.Done()
	return n
}
