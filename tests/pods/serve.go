package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weirproxy/weir/tests/child"
)

// Port is that of every backend.
const Port = 8080

// Settings of a backend, as environment variables.
const (
	// OnTerm says what SIGTERM does: "" ends the process at once, "drain" lets the
	// requests that run finish, "ignore" does nothing.
	OnTerm = "WEIR_POD_ON_TERM"
	// CrashAfter is the time after which the process ends by itself, with code 1.
	CrashAfter = "WEIR_POD_CRASH_AFTER"
	// Flap is how long /ready answers 503, and twice as long 200, by turns. Pods
	// take turns by their addresses: of three in a row one is not ready at a time.
	Flap = "WEIR_POD_FLAP"
	// Slow is the longest time that a request may take; default 5 ms.
	Slow = "WEIR_POD_SLOW"

	address  = "WEIR_POD_ADDR"
	executed = "WEIR_POD_EXECUTED"
)

// Serve runs a backend in the pod. It answers
//
//	/ready   200, or 503 by turns with Flap
//	/stream  a chunk every 100 ms, for as long as the client stays
//	/echo    with Upgrade: echo, every byte
//	others   the address that was asked; before, method and X-Id of the request are noted
//	         (Node.Executed): that is when it was executed
func (p *Pod) Serve(env ...string) (*child.Process, error) {
	cmd := p.Enter(os.Args[0])
	cmd.Env = append(append(os.Environ(), mode+"="+modeServe,
		address+"="+p.Addr.String(),
		executed+"="+filepath.Join(p.node.dir, p.Link+".executed")), env...)
	return child.Start(cmd, p.Log())
}

// Executed returns how often each request, "METHOD id", was executed by any pod
// that there was.
func (n *Node) Executed() (map[string]int, error) {
	count := map[string]int{}
	files, err := filepath.Glob(filepath.Join(n.dir, "*.executed"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			count[strings.TrimSpace(line)]++
		}
	}
	return count, nil
}

// backend is a process that serves.
type backend struct {
	log  *os.File
	slow time.Duration
	flap time.Duration
	turn int64 // of three
}

// serve returns only by ending the process.
func serve() {
	b := &backend{slow: duration(Slow, 5*time.Millisecond), flap: duration(Flap, 0)}
	at, err := netip.ParseAddr(os.Getenv(address))
	if err != nil {
		die(err)
	}
	b.turn = int64(at.As4()[3] % 3)
	if b.log, err = os.OpenFile(os.Getenv(executed), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
		die(err)
	}
	if d := duration(CrashAfter, 0); d > 0 {
		time.AfterFunc(d, func() { os.Exit(1) })
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/ready", b.ready)
	mux.HandleFunc("/stream", b.stream)
	mux.HandleFunc("/echo", b.echo)
	mux.HandleFunc("/", b.execute)
	s := &http.Server{Addr: fmt.Sprintf(":%d", Port), Handler: mux} // for what Own adds, too
	term := make(chan os.Signal, 1)
	switch what := os.Getenv(OnTerm); what {
	case "":
	case "ignore":
		signal.Ignore(syscall.SIGTERM)
	case "drain":
		signal.Notify(term, syscall.SIGTERM)
	default:
		die(fmt.Errorf("%s=%s: want drain, ignore or nothing", OnTerm, what))
	}
	drained := make(chan struct{})
	go func() {
		<-term
		s.Shutdown(context.Background())
		close(drained)
	}()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		die(err)
	}
	<-drained
	os.Exit(0)
}

func duration(name string, or time.Duration) time.Duration {
	text := os.Getenv(name)
	if text == "" {
		return or
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		die(fmt.Errorf("%s: %w", name, err))
	}
	return d
}

func die(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}

func (b *backend) ready(w http.ResponseWriter, _ *http.Request) {
	if b.flap > 0 && time.Now().UnixNano()/int64(b.flap)%3 == b.turn {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (b *backend) execute(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // not executed: the request is incomplete
	}
	if _, err := fmt.Fprintf(b.log, "%s %s\n", r.Method, r.Header.Get("X-Id")); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if b.slow > 0 {
		<-time.After(rand.N(b.slow))
	}
	io.WriteString(w, r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
}

func (b *backend) stream(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		io.WriteString(w, strconv.Itoa(n)+"\n")
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

func (b *backend) echo(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "echo" {
		w.WriteHeader(http.StatusUpgradeRequired)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	io.Copy(conn, buffered)
}
