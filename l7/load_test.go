package l7

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func monotonic() uint64 {
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return uint64(now.Nano())
}

func TestWorkersTellTheirLoad(t *testing.T) {
	hold := make(chan struct{})
	e := newEndpoint(t, func(w *wire) {
		if _, ok := w.head(); ok {
			<-hold
			io.WriteString(w.TCPConn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			io.Copy(io.Discard, w.r)
		}
	})
	loads := make([]WorkerLoad, 2)
	b := serve(t, Config{Workers: 2, Accept: AcceptHash, Loads: loads}, nil, e.addr)
	sum := func(of func(*WorkerLoad) uint64) uint64 { return of(&loads[0]) + of(&loads[1]) }
	const clients = 10
	for range clients {
		b.connect(t).send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
	}
	await(t, patience, "all connections and exchanges are told", func() bool {
		return sum(func(l *WorkerLoad) uint64 { return uint64(l.Connections.Load()) }) == clients &&
			sum(func(l *WorkerLoad) uint64 { return uint64(l.Active.Load()) }) == clients &&
			sum(func(l *WorkerLoad) uint64 { return l.Accepted.Load() }) == clients
	})
	await(t, patience, "both workers sleep", func() bool {
		return loads[0].State.Load()&loads[1].State.Load() == LoadIdle
	})
	close(hold)
	await(t, patience, "no exchange is left", func() bool {
		return sum(func(l *WorkerLoad) uint64 { return uint64(l.Active.Load()) }) == 0
	})
	for i := range loads {
		if age := time.Duration(monotonic() - loads[i].Tick.Load()); age < 0 || age > patience {
			t.Errorf("worker %d told its last turn %v ago, want less than %v", i, age, patience)
		}
	}
}

func TestAWorkerThatTakesNoMoreTellsIt(t *testing.T) {
	loads := make([]WorkerLoad, 1)
	b := serve(t, Config{Accept: AcceptHash, Loads: loads, Limits: Limits{ConnectionsMax: 2}}, nil, "127.0.0.1:1")
	first := b.connect(t)
	b.connect(t)
	await(t, patience, "full", func() bool { return loads[0].State.Load()&LoadFull != 0 })
	first.Close()
	await(t, patience, "not full", func() bool { return loads[0].State.Load()&LoadFull == 0 })
}

func TestTheLoadOfAWorkerFillsACacheLine(t *testing.T) {
	if got := unsafe.Sizeof(WorkerLoad{}); got != 64 {
		t.Errorf("WorkerLoad has %d bytes, want 64", got)
	}
}

// TestABrokenWorkerListensNoMore: under hash, the kernel would go on giving it
// connections.
func TestABrokenWorkerListensNoMore(t *testing.T) {
	s, err := New(Config{
		Addresses: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")},
		Workers:   2, Accept: AcceptHash, DrainTimeout: 30 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	addr := s.Addresses()[0].String()
	keeper, err := net.Dial("tcp", addr) // the drain waits for it, on whichever worker it is
	if err != nil {
		t.Fatal(err)
	}
	defer keeper.Close()
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()
	await(t, patience, "the connection is accepted", func() bool {
		st := s.Stats()
		return st.Workers[0].Connections+st.Workers[1].Connections == 1
	})
	broken := 0
	if s.Stats().Workers[0].Connections == 1 {
		broken = 1
	}
	null, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if err := unix.Dup3(int(null.Fd()), int(s.workers[broken].epfd), unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	s.workers[broken].notify()
	await(t, patience, "the other drains", func() bool { return s.Stats().Draining })
	client := http.Client{Timeout: 2 * time.Second}
	for i := range 40 {
		r, err := client.Get("http://" + addr)
		if err != nil {
			t.Errorf("request %d of 40 to the worker that is left: %v", i, err)
			break
		}
		r.Body.Close()
	}
	s.Kill()
	select {
	case err := <-done:
		if err == nil {
			t.Error("Run returned nil after a worker broke")
		}
	case <-time.After(patience):
		t.Error("Run did not end")
	}
}
