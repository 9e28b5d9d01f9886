package main

import (
	"fmt"
	"time"

	"github.com/weirproxy/weir/tests/bench/load"
)

// row is one kind of load.
type row struct {
	name, what string
	path       string
	bodyBytes  int64
	hosts      int
	conns      int
	close      bool
	fixedRate  bool
	syscalls   bool // system calls are counted too
	asked      bool // runs only if it is named
	churn      bool // endpoints come and go: runChurn
}

// rows are in the order in which they run.
var rows = []row{
	{name: "13B", what: "13 bytes, 64 keep-alive connections", path: "/13B", bodyBytes: 13, hosts: 1, conns: 64, syscalls: true},
	{name: "100K", what: "100 KiB, 64 keep-alive connections", path: "/100K", bodyBytes: 100 << 10, hosts: 1, conns: 64, syscalls: true},
	{name: "hosts", what: "100 hosts, each with its own service, 1 KiB", path: "/1K", bodyBytes: 1 << 10, hosts: 100, conns: 64, syscalls: true},
	{name: "close", what: "13 bytes, a new connection for each request", path: "/13B", bodyBytes: 13, hosts: 1, conns: 64, close: true, syscalls: true},
	{name: "one", what: "13 bytes, one connection", path: "/13B", bodyBytes: 13, hosts: 1, conns: 1},
	{name: "rate", what: "13 bytes at a fixed rate over 64 connections", path: "/13B", bodyBytes: 13, hosts: 1, conns: 64, fixedRate: true},
	{name: "many", what: "13 bytes, 1000 keep-alive connections", path: "/13B", bodyBytes: 13, hosts: 1, conns: 1000, asked: true},
	{name: "churn", what: "13 bytes at a fixed rate over 64 connections", path: "/13B", bodyBytes: 13, hosts: 1, conns: 64, fixedRate: true, churn: true},
}

func hostName(i int) string { return fmt.Sprintf("h%d.example.test", i) }

// plan returns the load that r puts on p for d.
func (r row) plan(p *proxy, d time.Duration, rate int) load.Plan {
	l := load.Plan{
		Addr:        p.addr,
		Connections: r.conns,
		Duration:    d,
		Close:       r.close,
		Path:        r.path,
		BodyBytes:   r.bodyBytes,
	}
	for i := range r.hosts {
		l.Hosts = append(l.Hosts, hostName(i))
	}
	if r.fixedRate {
		l.Rate = rate
	}
	return l
}
