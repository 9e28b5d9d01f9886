package peers

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirproxy/weir/tests/rig"
)

// stalled waits until a counter has not moved for half a second.
func stalled(t *testing.T, n *atomic.Int64) {
	t.Helper()
	last, since := int64(-1), time.Now()
	rig.Eventually(t, 2*rig.Deadline, "the transfer stalls", func() error {
		if v := n.Load(); v != last || v == 0 {
			last, since = v, time.Now()
		}
		if time.Since(since) < 500*time.Millisecond {
			return fmt.Errorf("%d bytes moved", last)
		}
		return nil
	})
}

// Several stalled transfers make what one of them costs visible against the
// noise of the process' memory.
const stalls = 16

// heldMax is what a stalled transfer may hold in user space.
const heldMax = 256 << 10

func TestADownloadToAClientThatDoesNotReadIsHeldBack(t *testing.T) {
	var sent atomic.Int64
	origin := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/small" {
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(1<<30))
		block := pattern(256 << 10)
		for range 1 << 12 {
			n, err := w.Write(block)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	a := weir(t, origin)
	rig.Do(t, a.Addr, "GET", rig.Get(host, "/small"))
	before := a.MustRSS()
	for range stalls {
		rig.Dial(t, a.Addr).Send(rig.Get(host, "/big"))
	}
	stalled(t, &sent)
	held := (a.MustRSS() - before) / stalls
	t.Logf("%d stalled downloads: %d KiB of memory each, %d KiB taken from the origin each", stalls, held>>10, sent.Load()/stalls>>10)
	if held > heldMax {
		t.Errorf("a stalled download holds %d KiB, want %d at most", held>>10, heldMax>>10)
	}
	if sent.Load() >= stalls<<30 {
		t.Error("all of it was taken from the origin")
	}
}

func TestAnUploadToABackendThatDoesNotReadIsHeldBack(t *testing.T) {
	release := make(chan struct{})
	b := rig.NewRecorder(t, "b").Handle(func(x *rig.Exchange) {
		if strings.HasPrefix(x.Start, "POST") {
			<-release
			x.Reset()
			return
		}
		x.Answer(200, "b")
	})
	t.Cleanup(func() { close(release) }) // before the recorder waits for its connections
	a := weir(t, b.Addr)
	rig.Do(t, a.Addr, "GET", rig.Get(host, "/small"))
	before := a.MustRSS()
	var sent atomic.Int64
	for range stalls {
		c := rig.Dial(t, a.Addr)
		c.Send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", host, 1<<30))
		go func() { // ends when the test closes the connection
			for {
				n, err := c.Write(pattern(256 << 10))
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		}()
	}
	stalled(t, &sent)
	held := (a.MustRSS() - before) / stalls
	t.Logf("%d stalled uploads: %d KiB of memory each, %d KiB taken from the client each", stalls, held>>10, sent.Load()/stalls>>10)
	if held > heldMax {
		t.Errorf("a stalled upload holds %d KiB, want %d at most", held>>10, heldMax>>10)
	}
}

func TestAnIdleConnectionIsCheap(t *testing.T) {
	const connections, warm = 10_000, 200
	raiseFileLimit(t, connections+2_000)
	a := weir(t, goOrigin(t), "--workers", "1", "--connections-max", "11000") // idle clients need no descriptor for an endpoint
	open := func(n int) {
		for range n {
			conn, err := net.Dial("tcp", a.Addr.String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			if _, err := io.WriteString(conn, rig.Get(host, "/length/1")); err != nil {
				t.Fatal(err)
			}
			conn.SetReadDeadline(time.Now().Add(rig.Deadline))
			answer := make([]byte, 4096)
			if k, err := conn.Read(answer); err != nil || !strings.HasPrefix(string(answer[:k]), "HTTP/1.1 200 ") {
				t.Fatalf("answer %q, %v", answer[:k], err)
			}
		}
	}
	open(warm)
	before := a.MustRSS()
	open(connections)
	each := float64(a.MustRSS()-before) / connections
	t.Logf("%d idle connections: %.2f KiB of memory each", connections, each/1024)
	if each > 1536 {
		t.Errorf("an idle connection costs %.0f B of memory, want 1536 at most", each)
	}
	var held float64
	for _, w := range a.WorkerStats() {
		held += w["Connections"].(float64)
	}
	if held < connections+warm {
		t.Errorf("workers hold %.0f connections, want %d", held, connections+warm)
	}
	runtime.KeepAlive(a)
}

// raiseFileLimit allows n descriptors, here and in processes started later.
func raiseFileLimit(t *testing.T, n uint64) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	// Weir keeps a part of its descriptors for endpoints.
	want := 2 * n
	if limit.Max < want && unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: want, Max: want}) != nil {
		want = limit.Max
	}
	if want < n+2_000 {
		t.Fatalf("RLIMIT_NOFILE is %d and can't be raised, want %d", limit.Max, n+2_000)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: want, Max: max(want, limit.Max)}); err != nil {
		t.Fatalf("raise RLIMIT_NOFILE to %d: %v", want, err)
	}
}
