package peers

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// origins by name.
var origins = map[string]func(*testing.T) netip.AddrPort{"nginx": nginxOrigin, "haproxy": haproxyOrigin, "go": goOrigin}

func TestBodiesArriveWholeFromEveryOrigin(t *testing.T) {
	for name, start := range origins {
		t.Run(name, func(t *testing.T) {
			c := client(weir(t, start(t)))
			for _, n := range sizes {
				for _, framing := range []string{"length", "chunked"} {
					download(t, c, framing, n)
					upload(t, c, framing, n, name == "go")
				}
			}
		})
	}
}

func download(t *testing.T, c *http.Client, framing string, n int) {
	t.Helper()
	resp, err := c.Get(url("/%s/%d", framing, n))
	if err != nil {
		t.Errorf("download of %d B, %s: %v", n, framing, err)
		return
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || hash(b) != hash(pattern(n)) {
		t.Errorf("download of %d B, %s: %s, %d bytes, %v, want 200 and the same bytes", n, framing, resp.Status, len(b), err)
	}
	if wantLength := int64(n); framing == "length" && resp.ContentLength != wantLength || framing == "chunked" && resp.ContentLength != -1 {
		t.Errorf("download of %d B, %s: Content-Length %d", n, framing, resp.ContentLength)
	}
}

// upload sends n bytes. exact: the origin sees the framing that Weir sends.
func upload(t *testing.T, c *http.Client, framing string, n int, exact bool) {
	t.Helper()
	body, declared := io.Reader(bytes.NewReader(pattern(n))), n
	if framing == "chunked" {
		body, declared = stream(pattern(n)), -1
	}
	resp, err := c.Post(url("/hash"), "application/octet-stream", body)
	if err != nil {
		t.Errorf("upload of %d B, %s: %v", n, framing, err)
		return
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	sum, got, length := fields(b)
	if err != nil || sum != hash(pattern(n)) || got != n {
		t.Errorf("upload of %d B, %s: origin saw %q, %v, want %s", n, framing, b, err, hash(pattern(n)))
	}
	// net/http sends an empty stream as Content-Length: 0; nginx and haproxy, as
	// origins, may turn a short chunked body into one with a length.
	if exact && n > 0 && length != declared {
		t.Errorf("upload of %d B, %s: origin saw Content-Length %d, want %d", n, framing, length, declared)
	}
}

func TestCurlUploadsAndDownloads(t *testing.T) {
	curl := need(t, "curl")
	a := weir(t, goOrigin(t))
	file := filepath.Join(t.TempDir(), "body")
	for _, n := range sizes {
		write(t, file, pattern(n))
		for _, framing := range []string{"length", "chunked"} {
			to := []string{"-sS", "--fail", "--connect-to", fmt.Sprintf("%s:80:%s", host, a.Addr)}
			out, err := exec.Command(curl, append(to, url("/%s/%d", framing, n))...).Output()
			if err != nil || hash(out) != hash(pattern(n)) {
				t.Errorf("curl: download of %d B, %s: %d bytes, %v", n, framing, len(out), err)
			}
			// curl asks with Expect: 100-continue above 1 MiB.
			args := append(to, "--data-binary", "@"+file)
			if framing == "chunked" {
				args = append(args, "-H", "Transfer-Encoding: chunked")
			}
			out, err = exec.Command(curl, append(args, url("/hash"))...).Output()
			if sum, got, _ := fields(out); err != nil || sum != hash(pattern(n)) || got != n {
				t.Errorf("curl: upload of %d B, %s: origin saw %q, %v", n, framing, out, err)
			}
		}
	}
}

func TestWrkSeesNoError(t *testing.T) {
	wrk := need(t, "wrk")
	a := weir(t, nginxOrigin(t))
	out, err := exec.Command(wrk, "-t1", "-c64", "-d2s", "-H", "Host: "+host, fmt.Sprintf("http://%s/length/4096", a.Addr)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "requests in") {
		t.Fatalf("wrk: %v: %s", err, out)
	}
	for _, bad := range []string{"Socket errors", "Non-2xx", " 0 requests in"} {
		if strings.Contains(string(out), bad) {
			t.Errorf("wrk reports:\n%s", out)
		}
	}
}

func TestManyParallelConnections(t *testing.T) {
	a := weir(t, goOrigin(t))
	c := client(a)
	var wait sync.WaitGroup
	for i := range 64 {
		wait.Go(func() {
			for j := range 20 {
				n := sizes[(i+j)%4]
				if (i+j)%2 == 0 {
					download(t, c, "length", n)
				} else {
					upload(t, c, "chunked", n, true)
				}
			}
		})
	}
	wait.Wait()
}

// slowly gives out pieces of 16 KiB with pauses: about 1.6 MiB/s.
type slowly struct{ r io.Reader }

func (s slowly) Read(p []byte) (int, error) {
	<-time.After(10 * time.Millisecond)
	return s.r.Read(p[:min(len(p), 16<<10)])
}

func TestSlowReaderAndSlowWriter(t *testing.T) {
	const n = 1 << 20
	c := client(weir(t, goOrigin(t)))
	resp, err := c.Get(url("/chunked/%d", n))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(slowly{resp.Body}); err != nil || hash(b) != hash(pattern(n)) {
		t.Errorf("slow reader got %d bytes, %v", len(b), err)
	}
	resp, err = c.Post(url("/hash"), "", slowly{bytes.NewReader(pattern(n))})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if sum, _, _ := fields(b); err != nil || sum != hash(pattern(n)) {
		t.Errorf("slow writer: origin saw %q, %v", b, err)
	}
}

// TestAClientThatHasSentAllMayHalfClose: its answer still comes, whole.
func TestAClientThatHasSentAllMayHalfClose(t *testing.T) {
	for name, start := range origins {
		t.Run(name, func(t *testing.T) {
			a := weir(t, start(t))
			for _, framing := range []string{"length", "chunked"} {
				c := rig.Dial(t, a.Addr)
				c.Send(rig.Get(host, fmt.Sprintf("/%s/%d", framing, 1<<20)))
				if err := c.CloseWrite(); err != nil {
					t.Fatal(err)
				}
				if m := c.Read("GET"); m.Status != 200 || hash(m.Body) != hash(pattern(1<<20)) {
					t.Errorf("%s: answer %d with %d bytes, want 200 with 1 MiB", framing, m.Status, len(m.Body))
				}
				c.ExpectClosed(rig.Deadline)
			}
		})
	}
}
