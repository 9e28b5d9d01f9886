package l7

import (
	"context"
	"net/netip"
	"sync/atomic"

	"github.com/weirproxy/weir/l7/route"
)

// Server is a set of workers and their listeners.
type Server struct {
	config Config
	table  atomic.Pointer[route.Table]
}

// New binds the addresses. The sockets accept from the kernel's point of view
// at once; requests are read when Run starts.
func New(c Config) (*Server, error) {
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	return &Server{config: c}, nil
}

// Addresses returns the bound addresses in the order of Config.Addresses, with
// the ports that the kernel chose.
func (s *Server) Addresses() []netip.AddrPort { return s.config.Addresses }

// SetTable puts t in force for every request that starts from now on. Until the
// first call every request is answered 503. Any goroutine may call it.
func (s *Server) SetTable(t *route.Table) { s.table.Store(t) }

// EndpointsChanged tells the workers that the endpoints of some cluster were
// replaced: they close idle connections to endpoints that take no more requests
// and give up tries on those that disappeared. Any goroutine may call it, after
// Cluster.SetEndpoints.
func (s *Server) EndpointsChanged() {}

// Run serves until ctx ends, then drains: it keeps accepting, answers with
// "Connection: close", closes idle connections, and returns when no connection
// is left or DrainTimeout has passed. It returns an error only if a worker can't
// start or its event loop breaks.
func (s *Server) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Kill ends a drain at once: open connections are closed.
func (s *Server) Kill() {}

// Stats returns the counters. Any goroutine may call it.
func (s *Server) Stats() Stats { return Stats{} }
