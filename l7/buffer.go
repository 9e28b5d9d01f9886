package l7

import "math/bits"

// Buffers come in four sizes; a stream that fills one gets the next.
const (
	bufferMin = 4 << 10
	bufferMax = 256 << 10
)

// buffers is a worker's stock of free buffers.
type buffers struct {
	free [4][][]byte
	// low is the smallest stock of each size since the last trim: what was never
	// needed in that time is given back.
	low  [4]int
	held uint64 // bytes handed out and free
}

func classOf(n int) int {
	if n <= bufferMin {
		return 0
	}
	return (bits.Len(uint((n-1)/bufferMin)) + 1) / 2
}

// get returns a buffer of at least n bytes, n <= bufferMax.
func (b *buffers) get(n int) []byte {
	class := classOf(n)
	list := b.free[class]
	if len(list) == 0 {
		size := bufferMin << (2 * class)
		b.held += uint64(size)
		return make([]byte, size)
	}
	p := list[len(list)-1]
	list[len(list)-1] = nil
	b.free[class] = list[:len(list)-1]
	b.low[class] = min(b.low[class], len(list)-1)
	return p
}

func (b *buffers) put(p []byte) {
	class := classOf(cap(p))
	b.free[class] = append(b.free[class], p[:cap(p)])
}

// stocked reports whether trim will find something to release.
func (b *buffers) stocked() bool {
	for _, list := range b.free {
		if len(list) > 0 {
			return true
		}
	}
	return false
}

// trim releases the buffers that were not needed since the last trim, to the
// garbage collector.
func (b *buffers) trim() {
	for class, list := range b.free {
		drop := min(b.low[class], len(list))
		for i := len(list) - drop; i < len(list); i++ {
			list[i] = nil
		}
		b.free[class] = list[:len(list)-drop]
		b.held -= uint64(drop) * uint64(bufferMin<<(2*class))
		b.low[class] = len(b.free[class])
	}
}

// queue holds bytes that wait, in one pooled buffer; it holds none while empty.
type queue struct {
	buf        []byte
	start, end int
}

func (q *queue) len() int      { return q.end - q.start }
func (q *queue) bytes() []byte { return q.buf[q.start:q.end] }

// append copies p behind what waits and reports whether it fits within
// bufferMax.
func (q *queue) append(b *buffers, p []byte) bool {
	if len(p) == 0 {
		return true
	}
	if !q.room(b, len(p)) {
		return false
	}
	q.end += copy(q.buf[q.end:], p)
	return true
}

// room makes n free bytes behind q.end.
func (q *queue) room(b *buffers, n int) bool {
	held := q.len()
	switch {
	case len(q.buf)-q.end >= n:
		return true
	case held+n > bufferMax:
		return false
	case held+n <= len(q.buf):
		copy(q.buf, q.buf[q.start:q.end])
	default:
		next := b.get(held + n)
		copy(next, q.bytes())
		if q.buf != nil {
			b.put(q.buf)
		}
		q.buf = next
	}
	q.start, q.end = 0, held
	return true
}

// consume drops n bytes from the front.
func (q *queue) consume(b *buffers, n int) {
	q.start += n
	if q.start == q.end {
		q.reset(b)
	}
}

func (q *queue) reset(b *buffers) {
	if q.buf != nil {
		b.put(q.buf)
	}
	*q = queue{}
}
