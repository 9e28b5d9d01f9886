// Package peers runs Weir between real programs: nginx, haproxy and net/http as
// origins, curl, wrk and net/http as clients, and WebSocket on both sides.
package peers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weirproxy/weir/tests/rig"
)

// sizes of bodies in bytes.
var sizes = []int{0, 1, 4 << 10, 64 << 10, 1 << 20, 64 << 20}

// pattern returns the body of a size: always the same random bytes.
var pattern = func() func(n int) []byte {
	all := sync.OnceValue(func() []byte {
		b := make([]byte, sizes[len(sizes)-1])
		rand.NewChaCha8([32]byte{7}).Read(b)
		return b
	})
	return func(n int) []byte { return all()[:n] }
}()

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// goOrigin serves GET /length/N and /chunked/N, a body of N bytes in that
// framing, and POST /hash, which answers with the hash of the body.
func goOrigin(t *testing.T) netip.AddrPort {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{framing}/{size}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("size"))
		if err != nil || n > len(pattern(sizes[len(sizes)-1])) {
			http.Error(w, "size", http.StatusNotFound)
			return
		}
		if r.PathValue("framing") == "length" {
			w.Header().Set("Content-Length", strconv.Itoa(n))
		} else {
			w.(http.Flusher).Flush() // the length is not known: chunks
		}
		w.Write(pattern(n))
	})
	mux.HandleFunc("POST /hash", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		n, err := io.Copy(sum, r.Body)
		if err != nil {
			return
		}
		fmt.Fprintf(w, "%s %d %d", hex.EncodeToString(sum.Sum(nil)), n, r.ContentLength)
	})
	return serve(t, mux)
}

// serve runs h on a free address until the test ends.
func serve(t *testing.T, h http.Handler) netip.AddrPort {
	t.Helper()
	addr := rig.Free(t)
	l, err := net.Listen("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return addr
}

// need returns the path of a program. Without it the test is skipped; with
// WEIR_REQUIRE_ROOT=1 that is a failure.
func need(t *testing.T, program string) string {
	t.Helper()
	for _, dir := range []string{"", "/usr/sbin/", "/sbin/"} {
		if path, err := exec.LookPath(dir + program); err == nil {
			return path
		}
	}
	if os.Getenv("WEIR_REQUIRE_ROOT") == "1" {
		t.Fatalf("%s is not installed", program)
	}
	t.Skipf("%s is not installed", program)
	return ""
}

const nginxConfig = `daemon off;
master_process off;
pid %[1]s/pid;
error_log %[1]s/error.log;
events { worker_connections 1024; }
http {
	access_log off;
	client_max_body_size 0;
	client_body_temp_path %[1]s/t1; proxy_temp_path %[1]s/t2; fastcgi_temp_path %[1]s/t3;
	uwsgi_temp_path %[1]s/t4; scgi_temp_path %[1]s/t5;
	server {
		listen %[2]s;
		location /length/ { root %[1]s; }
		location / { proxy_pass http://%[3]s; proxy_http_version 1.1; proxy_request_buffering off; proxy_buffering off; }
	}
}
`

// nginxOrigin serves what goOrigin serves: bodies with a length as files, the
// rest through goOrigin.
func nginxOrigin(t *testing.T) netip.AddrPort {
	t.Helper()
	program, addr := need(t, "nginx"), rig.Free(t)
	dir, err := os.MkdirTemp("", "weir-nginx-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	write(t, filepath.Join(dir, "conf"), fmt.Appendf(nil, nginxConfig, dir, addr, goOrigin(t)))
	for _, n := range sizes {
		write(t, filepath.Join(dir, "length", strconv.Itoa(n)), pattern(n))
	}
	// nginx started by root reads the files as another user.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	rig.Start(t, exec.Command(program, "-c", filepath.Join(dir, "conf")))
	await(t, addr)
	return addr
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, addr netip.AddrPort) {
	t.Helper()
	rig.Eventually(t, rig.Deadline, addr.String()+" listens", func() error {
		conn, err := net.Dial("tcp", addr.String())
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

const haproxyConfig = `defaults
	mode http
	timeout connect 5s
	timeout client 60s
	timeout server 60s
listen all
	bind %s
	server go %s
`

// haproxyOrigin is haproxy in front of goOrigin.
func haproxyOrigin(t *testing.T) netip.AddrPort {
	t.Helper()
	program, addr := need(t, "haproxy"), rig.Free(t)
	conf := filepath.Join(t.TempDir(), "conf")
	write(t, conf, fmt.Appendf(nil, haproxyConfig, addr, goOrigin(t)))
	rig.Start(t, exec.Command(program, "-db", "-f", conf))
	await(t, addr)
	return addr
}

const host = "peer.example.test"

// weir starts an agent that sends host to origin; bodies may have any size.
func weir(t *testing.T, origin netip.AddrPort, flags ...string) *rig.Agent {
	t.Helper()
	objects := append(rig.Svc("t1", "s", origin),
		rig.Ingress("t1", "i", rig.R(host, "/", "Prefix", "s")).Annotate(rig.Nginx+"proxy-body-size", "0"))
	return rig.StartAgent(t, objects, flags...)
}

// client returns a net/http client whose connections all go to a.
func client(a *rig.Agent) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", a.Addr.String())
		},
		MaxIdleConnsPerHost: 64,
		DisableCompression:  true,
	}}
}

// stream hides what a reader is, so that net/http sends chunks.
func stream(b []byte) io.Reader { return struct{ io.Reader }{bytes.NewReader(b)} }

func url(path string, args ...any) string { return "http://" + host + fmt.Sprintf(path, args...) }

// fields splits what POST /hash answered.
func fields(b []byte) (sum string, n, declared int) {
	f := strings.Fields(string(b))
	if len(f) != 3 {
		return "", -1, -1
	}
	n, _ = strconv.Atoi(f[1])
	declared, _ = strconv.Atoi(f[2])
	return f[0], n, declared
}
