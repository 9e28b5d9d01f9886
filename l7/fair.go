package l7

// How much one connection may do before the others have their turn: so many bytes
// read, in and out, where a request counts as requestCost and a byte of chunk
// framing as chunkCost. That holds the others up for half a millisecond; what one
// read brings, at most answerRead bytes, is always finished, which takes up to two
// if each of its chunks is one byte.
const (
	turnBytes   = 256 << 10
	requestCost = 4 << 10
	chunkCost   = 8
)

// spent reports whether the event that is handled has had its share.
func (w *Worker) spent() bool { return w.used >= turnBytes }

// yield has the connection go on in the next turn, which comes without a wait.
func (c *client) yield() {
	if !c.yielded && c.mode != clientClosed {
		c.yielded = true
		c.w.yielded = append(c.w.yielded, c)
	}
}

// resumeYielded continues what the last turn put off.
func (w *Worker) resumeYielded() {
	list := w.yielded
	w.yielded = w.spare.yielded[:0]
	for i, c := range list {
		list[i] = nil
		if !c.yielded {
			continue // closed meanwhile, perhaps even taken for another connection
		}
		c.yielded = false
		w.used = 0
		c.resume()
		w.serveRunnable()
	}
	w.spare.yielded = list
}

// resume goes on with both directions.
func (c *client) resume() {
	x := c.x
	if x == nil {
		c.serve()
		return
	}
	if x.b != nil && x.b.readable {
		x.resumeDown()
	}
	if c.x == x {
		x.resumeUp()
	}
}
