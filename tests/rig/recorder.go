package rig

import (
	"bufio"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// Recorder is a backend that records the bytes of every request. Its handler
// decides on the answers; the default is 200 with the recorder's name.
type Recorder struct {
	Name string
	Addr netip.AddrPort
	l    *net.TCPListener

	mu       sync.Mutex
	handler  func(*Exchange)
	requests []*Request
	received []byte // everything from all connections, at most 1 MiB
	bytes    int64
	conns    int
	open     map[net.Conn]bool
	serving  sync.WaitGroup
}

// Request is what one request looked like to the backend.
type Request struct {
	*Message
	Raw  string // head and, if it was read, the body as they came
	Conn int    // number of its connection, from 1
}

// Line returns method and target.
func (r *Request) Line() string { return strings.TrimSuffix(r.Start, " HTTP/1.1") }

// NewRecorder starts a recorder on 127.0.0.1; it ends with the test.
func NewRecorder(t testing.TB, name string) *Recorder {
	t.Helper()
	return NewRecorderAt(t, name, Free(t))
}

// NewRecorderAt starts a recorder on a given address.
func NewRecorderAt(t testing.TB, name string, addr netip.AddrPort) *Recorder {
	t.Helper()
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
	if err != nil {
		t.Fatal(err)
	}
	b := &Recorder{Name: name, Addr: addr, l: l, open: map[net.Conn]bool{}}
	b.serving.Go(b.accept)
	t.Cleanup(b.Close)
	return b
}

// Handle replaces the handler for requests that begin from now on.
func (b *Recorder) Handle(h func(*Exchange)) *Recorder {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handler = h
	return b
}

// Close stops listening and resets all connections, as a killed pod does.
func (b *Recorder) Close() {
	b.l.Close()
	b.mu.Lock()
	for c := range b.open {
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	b.mu.Unlock()
	b.serving.Wait()
}

// Requests returns what was received, in order of the ends of their heads.
func (b *Recorder) Requests() []*Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*Request(nil), b.requests...)
}

// Last returns the newest request.
func (b *Recorder) Last(t testing.TB) *Request {
	t.Helper()
	all := b.Requests()
	if len(all) == 0 {
		t.Fatalf("recorder %s received no request", b.Name)
	}
	return all[len(all)-1]
}

// Bytes returns the number of bytes received on all connections.
func (b *Recorder) Bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes
}

// Received returns all bytes received on all connections, up to 1 MiB.
func (b *Recorder) Received() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.received)
}

// Conns returns the number of connections accepted so far.
func (b *Recorder) Conns() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.conns
}

// Open returns the number of connections that are open.
func (b *Recorder) Open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open)
}

// Forget clears what was recorded.
func (b *Recorder) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests, b.received, b.bytes = nil, nil, 0
}

func (b *Recorder) accept() {
	for {
		conn, err := b.l.AcceptTCP()
		if err != nil {
			return // closed
		}
		b.mu.Lock()
		b.conns++
		b.open[conn] = true
		number := b.conns
		b.mu.Unlock()
		b.serving.Go(func() { b.serve(conn, number) })
	}
}

// tap records what is read through it.
type tap struct {
	conn *net.TCPConn
	b    *Recorder
	raw  []byte // of this connection, since the last request
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.conn.Read(p)
	t.b.mu.Lock()
	t.b.bytes += int64(n)
	if room := 1<<20 - len(t.b.received); room > 0 {
		t.b.received = append(t.b.received, p[:min(n, room)]...)
	}
	t.b.mu.Unlock()
	if len(t.raw) < 1<<20 {
		t.raw = append(t.raw, p[:n]...)
	}
	return n, err
}

func (b *Recorder) serve(conn *net.TCPConn, number int) {
	t := &tap{conn: conn, b: b}
	r := bufio.NewReaderSize(t, 64<<10)
	defer func() {
		conn.Close()
		b.mu.Lock()
		delete(b.open, conn)
		b.mu.Unlock()
	}()
	for {
		x := &Exchange{TCP: conn, backend: b, tap: t, r: r}
		m, err := readHead(r)
		if err != nil {
			return // closed, or not HTTP: the bytes are recorded
		}
		x.Request = &Request{Message: m, Conn: number, Raw: x.taken()}
		b.mu.Lock()
		b.requests = append(b.requests, x.Request)
		handler := b.handler
		b.mu.Unlock()
		if handler == nil {
			handler = func(x *Exchange) { x.Answer(200, x.backend.Name) }
		}
		handler(x)
		if x.closed || x.ReadBody() != nil {
			return
		}
	}
}
