package cases

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httputil"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// uploads is a world whose route takes bodies of limit.
func uploads(t *testing.T, limit string) *world {
	t.Helper()
	i := rig.Ingress("t1", "i", rig.R("a.example.test", "/", "Prefix", "a"))
	if limit != "" {
		i.Annotate(rig.Nginx+"proxy-body-size", limit)
	}
	return newWorld(t, "a", []rig.Object{i})
}

// TestCB82UploadsInConstantMemory is the case with 256 MiB instead of 2 GiB, to
// a backend that reads 80 MiB/s at most.
func TestCB82UploadsInConstantMemory(t *testing.T) {
	const size, piece = 256 << 20, 4 << 20
	for _, framing := range []string{"Content-Length", "chunked"} {
		t.Run(framing, func(t *testing.T) {
			w := uploads(t, "3g")
			w.expect("a.example.test", "/", "a")
			type report struct {
				first time.Time
				sum   string
				n     int64
			}
			got := make(chan report, 1)
			w.pods["a"].Handle(func(x *rig.Exchange) {
				body := x.Stream()
				if framing == "chunked" {
					body = httputil.NewChunkedReader(body)
				} else {
					body = io.LimitReader(body, size)
				}
				var r report
				sum := sha256.New()
				for {
					n, err := io.CopyN(sum, body, piece)
					if r.n += n; r.first.IsZero() {
						r.first = time.Now()
					}
					if err != nil {
						break
					}
					<-time.After(50 * time.Millisecond) // the backend's speed
				}
				r.sum = hex.EncodeToString(sum.Sum(nil))
				got <- r
				x.Write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
				x.Close()
			})

			before, stop, peak := w.MustRSS(), make(chan struct{}), make(chan int64, 1)
			go func() { peak <- watchRSS(w.Pid, stop) }()
			c := rig.Dial(t, w.Addr)
			start := time.Now()
			want := upload(t, c, framing, size)
			r := <-got
			close(stop)
			if m := c.Read("POST"); string(m.Body) != "done" {
				t.Errorf("answer %d %q, want 200 done", m.Status, m.Body)
			}
			if r.n != size || r.sum != want {
				t.Errorf("backend read %d bytes with hash %s, want %d with %s", r.n, r.sum, size, want)
			}
			if lag := r.first.Sub(start); lag > time.Second {
				t.Errorf("backend had its first 4 MiB after %v", lag)
			}
			if grown := <-peak - before; grown > 2<<20 {
				t.Errorf("RSS grew by %d KiB, want 2048 at most", grown>>10)
			}
		})
	}
}

// TestCB82AnUploadIsNotSpooled: the backend has its first byte while the client
// still sends.
func TestCB82AnUploadIsNotSpooled(t *testing.T) {
	for _, framing := range []string{"Content-Length: 1000000", "Transfer-Encoding: chunked"} {
		best := time.Hour // of three: the machine has other work too
		for range 3 {
			w := uploads(t, "3g")
			first := make(chan time.Time, 1)
			w.pods["a"].Handle(func(x *rig.Exchange) {
				if _, err := x.Stream().Read(make([]byte, 1)); err == nil {
					first <- time.Now()
				}
				x.Gone(rig.Deadline)
				x.Close()
			})
			c := rig.Dial(t, w.Addr)
			start := time.Now()
			c.Send(rig.Lines("POST / HTTP/1.1", "Host: a.example.test", framing) + "4\r\nbody\r\n")
			select {
			case at := <-first:
				best = min(best, at.Sub(start))
			case <-time.After(rig.Deadline):
				t.Fatalf("%s: the backend has nothing of the body", framing)
			}
			c.Close()
		}
		if best > 100*time.Millisecond {
			t.Errorf("%s: the first byte took %v at best, want 100 ms at most", framing, best)
		}
	}
}

// upload sends size random bytes and returns their hash.
func upload(t *testing.T, c *rig.Client, framing string, size int) string {
	t.Helper()
	declared := fmt.Sprintf("Content-Length: %d", size)
	if framing == "chunked" {
		declared = "Transfer-Encoding: chunked"
	}
	c.Send(rig.Lines("POST / HTTP/1.1", "Host: a.example.test", declared))
	block := make([]byte, 64<<10)
	random, sum := rand.NewChaCha8([32]byte{1}), sha256.New()
	for sent := 0; sent < size; sent += len(block) {
		random.Read(block)
		sum.Write(block)
		if framing == "chunked" {
			c.Send(fmt.Sprintf("%x\r\n%s\r\n", len(block), block))
		} else {
			c.Send(string(block))
		}
	}
	if framing == "chunked" {
		c.Send("0\r\n\r\n")
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// watchRSS returns the most memory that pid was seen with until stop closes.
func watchRSS(pid int, stop chan struct{}) (peak int64) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return peak
		case <-tick.C:
			if n, err := rig.RSS(pid); err == nil {
				peak = max(peak, n)
			}
		}
	}
}

func TestCB82ADeclaredBodyAboveTheLimitIsRefusedAtOnce(t *testing.T) {
	for _, c := range []struct {
		limit  string
		length int64
		want   string
	}{
		{"3g", 4 << 30, "413"},
		{"", 1<<20 + 1, "413"},
		{"", 1 << 20, "a"},
		{"0", 1<<20 + 1, "a"},
	} {
		t.Run(fmt.Sprintf("%d B under limit %q", c.length, c.limit), func(t *testing.T) {
			w := uploads(t, c.limit)
			conn := rig.Dial(t, w.Addr)
			conn.Send(rig.Lines("POST / HTTP/1.1", "Host: a.example.test", fmt.Sprintf("Content-Length: %d", c.length)))
			if c.want != "413" {
				conn.Send(string(make([]byte, c.length)))
			}
			if got := outcome(conn.Read("POST")); got != c.want {
				t.Errorf("POST -> %s, want %s", got, c.want)
			}
			if c.want == "413" {
				untouched(t, w.pods["a"])
			} else if n := int64(len(w.pods["a"].Last(t).Body)); n != c.length {
				t.Errorf("backend read %d bytes, want %d", n, c.length)
			}
		})
	}
}

func TestCB82AChunkedBodyThatPassesTheLimitIsCut(t *testing.T) {
	w := uploads(t, "8m")
	ended := make(chan error, 1)
	w.pods["a"].Handle(func(x *rig.Exchange) {
		_, err := io.Copy(io.Discard, httputil.NewChunkedReader(x.Stream()))
		ended <- err
		x.Close()
	})
	c := rig.Dial(t, w.Addr)
	c.Send(rig.Lines("POST / HTTP/1.1", "Host: a.example.test", "Transfer-Encoding: chunked"))
	block := make([]byte, 64<<10)
	for range 10 << 4 { // 10 MiB; the answer may come before the last of them
		if c.TrySend(fmt.Sprintf("%x\r\n%s\r\n", len(block), block)) != nil {
			break
		}
	}
	if got := c.Read("POST").Status; got != 413 {
		t.Errorf("status %d, want 413", got)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("backend saw the body end like a complete one")
		}
	case <-time.After(rig.Deadline):
		t.Error("backend still waits for the body")
	}
	if n := w.pods["a"].Bytes(); n > 8<<20+64<<10 {
		t.Errorf("backend received %d bytes, want about 8 MiB at most", n)
	}
}
