package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// backend is a small web server on a loopback port.
type backend struct {
	name    string
	address netip.AddrPort
	server  *http.Server
	done    chan struct{} // closed when it no longer serves
	end     context.CancelFunc
}

func startBackend(name string) (*backend, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", name, err)
	}
	ctx, end := context.WithCancel(context.Background())
	b := &backend{name: name, address: l.Addr().(*net.TCPAddr).AddrPort(), done: make(chan struct{}), end: end}
	mux := http.NewServeMux()
	mux.HandleFunc("/", b.echo)
	mux.HandleFunc("/stream", b.stream)
	mux.HandleFunc("/upload", b.upload)
	mux.HandleFunc("/ws", b.webSocket)
	b.server = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	go func() {
		defer close(b.done)
		b.server.Serve(l)
	}()
	return b, nil
}

// close ends the backend and its connections. WebSockets see the context end.
func (b *backend) close() {
	b.end()
	b.server.Close()
	<-b.done
}

// echo answers what it received.
func (b *backend) echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	var s strings.Builder
	fmt.Fprintf(&s, "backend %s received\n%s %s %s\nHost: %s\n", b.name, r.Method, r.RequestURI, r.Proto, r.Host)
	var lines []string
	for name, values := range r.Header {
		for _, v := range values {
			lines = append(lines, name+": "+v+"\n")
		}
	}
	slices.Sort(lines)
	io.WriteString(w, s.String()+strings.Join(lines, ""))
}

// stream answers one line each half second.
func (b *backend) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := http.NewResponseController(w)
	for i := range 6 {
		fmt.Fprintf(w, "line %d of 6 from backend %s\n", i+1, b.name)
		if out.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// upload counts the body.
func (b *backend) upload(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		http.Error(w, "the body broke off", http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "backend %s received %d bytes\n", b.name, n)
}
