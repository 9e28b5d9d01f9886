package l7

import (
	"bytes"
	"testing"
)

func TestBufferClasses(t *testing.T) {
	for _, c := range []struct{ n, size int }{
		{1, 4 << 10}, {4 << 10, 4 << 10}, {4<<10 + 1, 16 << 10}, {16 << 10, 16 << 10}, {16<<10 + 1, 64 << 10},
		{64 << 10, 64 << 10}, {64<<10 + 1, 256 << 10}, {256 << 10, 256 << 10},
	} {
		var b buffers
		if got := len(b.get(c.n)); got != c.size {
			t.Errorf("get(%d) has %d bytes, want %d", c.n, got, c.size)
		}
	}
}

func TestQueueKeepsOrderAndReturnsItsBuffer(t *testing.T) {
	var b buffers
	var q queue
	var want []byte
	for i := range 3000 {
		p := bytes.Repeat([]byte{byte(i)}, i%97)
		if !q.append(&b, p) {
			t.Fatalf("append %d refused at %d bytes", i, q.len())
		}
		want = append(want, p...)
		n := min(i%61, q.len())
		if !bytes.Equal(q.bytes()[:n], want[:n]) {
			t.Fatalf("step %d: wrong bytes", i)
		}
		q.consume(&b, n)
		want = want[n:]
	}
	if !bytes.Equal(q.bytes(), want) {
		t.Fatal("wrong bytes at the end")
	}
	if q.append(&b, make([]byte, bufferMax)) {
		t.Error("append beyond bufferMax was taken")
	}
	q.consume(&b, q.len())
	if q.buf != nil {
		t.Error("an empty queue holds a buffer")
	}
	b.trim()
	b.trim()
	if b.held != 0 {
		t.Errorf("%d bytes held after two trims without use, want 0", b.held)
	}
}
