// Package l7 serves HTTP: from accept to response.
//
// A Server owns worker loops. A worker is one goroutine on its own thread, with
// its own epoll set, timers, buffers, upstream pools and counters; a connection
// lives and dies on one worker. Workers share the pointer to the routing table
// and nothing else. The package knows neither Kubernetes nor BPF.
package l7

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"
)

// AcceptPolicy says which worker gets a new connection.
type AcceptPolicy string

const (
	// AcceptShared: one listening socket; every worker accepts from it.
	AcceptShared AcceptPolicy = "shared"
	// AcceptFountain: one listening socket; a worker accepts only while all
	// workers before it hold at least FountainMark connections.
	AcceptFountain AcceptPolicy = "fountain"
	// AcceptHash: a listening socket per worker; the kernel chooses one by a
	// hash of the addresses (SO_REUSEPORT, Linux 3.9), unless a program that is
	// attached to Server.Listeners chooses.
	AcceptHash AcceptPolicy = "hash"
)

// LogFormat says what the access log looks like.
type LogFormat string

const (
	LogOff   LogFormat = "off"
	LogJSON  LogFormat = "json"
	LogNginx LogFormat = "nginx" // ingress-nginx's upstreaminfo format
)

// Limits bound what one peer can make a worker hold or do.
type Limits struct {
	HeadBytesMax         int           // of a request's head, default 32 KiB: 431
	LineBytesMax         int           // of one of its lines, default 16 KiB: 431, request line 414
	FieldsMax            int           // of its fields, default 128: 431
	ResponseHeadBytesMax int           // of a response's head, default 64 KiB: 502
	HeadTimeout          time.Duration // from a head's first byte to its last, default 10 s: 408
	BodyTimeout          time.Duration // between two reads of a request body, default 60 s: 408
	IdleTimeout          time.Duration // between two requests, default 75 s
	RequestsMax          int           // on one connection, 0 = no limit
	LifetimeMax          time.Duration // of a connection, then "Connection: close"; default 1 h
	ConnectionsMax       int           // of all workers, default 0: half of what RLIMIT_NOFILE leaves
}

// UpstreamLimits bound a worker's pools.
type UpstreamLimits struct {
	IdleMax     int           // idle connections per worker, default 320
	IdleTimeout time.Duration // default 55 s, under the 60 s common among backends
	RequestsMax int           // on one connection, default 10,000
	LifetimeMax time.Duration // default 1 h
	HedgeAfter  time.Duration // a connect that takes longer starts another elsewhere; default 250 ms
}

// Forwarded says what is done with X-Forwarded-* fields of a request.
type Forwarded struct {
	Trust      []netip.Prefix // peers whose X-Forwarded-* are believed; empty: none
	AppendFull bool           // X-Forwarded-For is appended to instead of replaced
	// RequestID: X-Request-ID is made where the client sends none. Default on.
	NoRequestID bool
	Underscores bool // fields with '_' in their name are passed on instead of dropped
}

// Config is what a Server is made from. The zero value of a field means its
// default.
type Config struct {
	Addresses    []netip.AddrPort // at least one; port 0 lets the kernel choose
	Workers      int              // > 0
	CPUs         []int            // worker i is pinned to CPUs[i%len]; empty: not pinned
	Accept       AcceptPolicy     // default shared
	FountainMark int              // connections, default 256
	Loads        []WorkerLoad     // by worker: where each tells its load; empty: nowhere
	Limits       Limits
	Upstream     UpstreamLimits
	Forwarded    Forwarded
	DrainTimeout time.Duration // from the end of Run's ctx to the forced close, default 240 s
	LogFormat    LogFormat     // default off
	LogTo        io.Writer     // written by one goroutine of the server, whole lines
	Logger       *slog.Logger  // never nil
}

// HeadBytesCap is the most that the limits of heads may be, and that a head may have
// as it is forwarded: it shares one buffer with the part of the request's body that
// is kept for a retry, and with one read more.
const HeadBytesCap = bufferMax / 2

func def[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// setDefaults fills zero fields and reports the first contradiction.
func (c *Config) setDefaults() error {
	def(&c.Accept, AcceptShared)
	def(&c.FountainMark, 256)
	def(&c.Limits.HeadBytesMax, 32<<10)
	def(&c.Limits.LineBytesMax, 16<<10)
	def(&c.Limits.FieldsMax, 128)
	def(&c.Limits.ResponseHeadBytesMax, 64<<10)
	def(&c.Limits.HeadTimeout, 10*time.Second)
	def(&c.Limits.BodyTimeout, 60*time.Second)
	def(&c.Limits.IdleTimeout, 75*time.Second)
	def(&c.Limits.LifetimeMax, time.Hour)
	def(&c.Upstream.IdleMax, 320)
	def(&c.Upstream.IdleTimeout, 55*time.Second)
	def(&c.Upstream.RequestsMax, 10_000)
	def(&c.Upstream.LifetimeMax, time.Hour)
	def(&c.Upstream.HedgeAfter, 250*time.Millisecond)
	def(&c.DrainTimeout, 240*time.Second)
	def(&c.LogFormat, LogOff)
	switch {
	case c.Limits.HeadBytesMax > HeadBytesCap || c.Limits.ResponseHeadBytesMax > HeadBytesCap:
		return fmt.Errorf("limits of heads: %d and %d bytes, want %d at most", c.Limits.HeadBytesMax, c.Limits.ResponseHeadBytesMax, HeadBytesCap)
	case c.Logger == nil:
		return fmt.Errorf("no logger")
	case len(c.Addresses) == 0:
		return fmt.Errorf("no address to listen on")
	case c.Workers < 1:
		return fmt.Errorf("workers: %d, want 1 or more", c.Workers)
	case len(c.Loads) != 0 && len(c.Loads) != c.Workers:
		return fmt.Errorf("loads: %d, want one for each of %d workers", len(c.Loads), c.Workers)
	case c.Accept != AcceptShared && c.Accept != AcceptFountain && c.Accept != AcceptHash:
		return fmt.Errorf("accept policy %q: want shared, fountain or hash", c.Accept)
	case c.LogFormat != LogOff && c.LogFormat != LogJSON && c.LogFormat != LogNginx:
		return fmt.Errorf("access log %q: want off, json or nginx", c.LogFormat)
	case c.LogFormat != LogOff && c.LogTo == nil:
		return fmt.Errorf("access log %q: nowhere to write it", c.LogFormat)
	}
	return nil
}
