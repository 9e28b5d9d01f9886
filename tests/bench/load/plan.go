// Package load makes HTTP/1.1 GET requests from one thread with epoll, so that
// it takes little of the CPU that it shares with the backend.
//
// It understands just what the benchmark's backend sends: answers with a
// Content-Length. Anything else is counted as an error.
package load

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Plan says what to do.
type Plan struct {
	Addr        netip.AddrPort
	Connections int
	Duration    time.Duration
	Rate        int      // requests per second on a fixed schedule; 0 = as fast as answers come
	Close       bool     // one request on each connection
	Hosts       []string // taken in turn
	Path        string
	BodyBytes   int64 // of every answer
}

// Result says what came of it.
type Result struct {
	Requests int // answered with 200 and a body of BodyBytes
	Errors   int
	Late     int // with Rate: requests not sent because no connection was free for 1 s
	Elapsed  time.Duration
	P50, P99 time.Duration // from when the request was due to the last byte of its answer
	Max      time.Duration
}

func (p Plan) check() error {
	switch {
	case p.Connections < 1:
		return fmt.Errorf("connections: %d, want 1 or more", p.Connections)
	case len(p.Hosts) == 0:
		return fmt.Errorf("no host")
	case p.Rate < 0:
		return fmt.Errorf("rate: %d, want 0 or more", p.Rate)
	case p.Close && p.Rate != 0:
		return fmt.Errorf("a rate in close mode is not supported")
	case !p.Addr.Addr().Is4():
		return fmt.Errorf("address %s: want IPv4", p.Addr)
	}
	return nil
}

// requests returns the bytes of the request for each host.
func (p Plan) requests() [][]byte {
	list := make([][]byte, len(p.Hosts))
	for i, host := range p.Hosts {
		text := "GET " + p.Path + " HTTP/1.1\r\nHost: " + host +
			"\r\nUser-Agent: bench/1\r\nAccept: */*\r\n"
		if p.Close {
			text += "Connection: close\r\n"
		}
		list[i] = []byte(text + "\r\n")
	}
	return list
}

// quantiles fills the latencies of r from all of them, in nanoseconds.
func (r *Result) quantiles(all []int64) {
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	at := func(q float64) time.Duration { return time.Duration(all[int(q*float64(len(all)-1))]) }
	r.P50, r.P99, r.Max = at(0.5), at(0.99), at(1)
}
