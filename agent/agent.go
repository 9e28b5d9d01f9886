// Package agent wires the parts of Weir: objects become tables, tables serve
// requests, and an admin server tells how it goes.
//
// Run is the node agent. Explain and Lint answer questions about objects without
// serving. The package returns data; what is printed is up to cmd/weir.
package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/weirproxy/weir/agent/netwatch"
	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/k8s/report"
	"github.com/weirproxy/weir/l7"
)

// source tells the objects and each change of them until ctx ends, from one
// goroutine. The first change, and the first after it was run anew, is a whole set.
type source interface {
	Run(ctx context.Context, changed func(k8s.Change)) error
}

// agent is one run.
type agent struct {
	config Config
	server *l7.Server
	source source
	// sourceName is where its objects are, for errors.
	sourceName string
	tables     *tables
	reporter   *report.Reporter // nil without an API server
	view       report.View      // of the source, for the reporter
	state      *state
	log        *logFile // nil: no access log
}

// Run serves until ctx ends, then drains; it returns nil after a drain, even one
// that reached its deadline or was ended by Config.Kill.
//
// It is ready, for /readyz and Config.Started, once the sockets are bound and the
// first full table is in force; it stops being ready the moment ctx ends. While
// it drains, endpoints are still followed and the admin server still answers. It
// fails if something can't be opened or bound, if the first set of objects can't
// be read, or if the data path breaks.
//
// Unless the environment sets GOMAXPROCS, Run sets it to one more than the
// workers, for everything that is not a worker, until it returns. Likewise, without
// GOGC, garbage is collected more often.
func Run(ctx context.Context, config Config) (err error) {
	system := os.DirFS("/")
	if config, err = config.complete(system); err != nil {
		return err
	}
	defer reserveProcs(config.Workers + 1)()
	defer tightenGC()()
	a := &agent{config: config, state: new(state)}
	if a.log, err = config.openLog(); err != nil {
		return err
	}
	if a.log != nil {
		defer func() { err = errors.Join(err, a.log.close()) }()
	}
	if err = a.openSource(); err != nil {
		return err
	}
	adminListener, err := listenAdmin(config)
	if err != nil {
		return err
	}
	if err = a.openDataPath(system); err != nil {
		if adminListener != nil {
			adminListener.Close()
		}
		return err
	}
	defer func() { err = errors.Join(err, a.state.accept.close()) }()
	a.state.network = netwatch.New(func(addresses []netip.Addr) { a.tables.applyLost(addresses) })
	a.config.Objects.Lost = a.state.network.Lost
	a.tables = newTables(a.config.Objects, a.server, a.state, config.Logger)
	a.tables.reporter = a.reporter
	return a.run(ctx, adminListener)
}

// reserveProcs sets GOMAXPROCS to n and returns how to undo it.
func reserveProcs(n int) (undo func()) {
	if os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	before := runtime.GOMAXPROCS(n)
	return func() { runtime.GOMAXPROCS(before) }
}

// gcPercent is how much garbage may gather, percent of what is in use. The data path
// makes none, so only the control path pays for collecting it twice as often, and
// 5,000 Ingresses take 100 MB instead of 130.
const gcPercent = 50

// tightenGC sets gcPercent, unless the environment sets GOGC, and returns how to undo
// it.
func tightenGC() (undo func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(gcPercent)
	return func() { debug.SetGCPercent(before) }
}

// listenAdmin binds the admin server's address, nil if it has none.
func listenAdmin(c Config) (net.Listener, error) {
	if !c.AdminAddress.IsValid() {
		return nil, nil
	}
	l, err := net.Listen("tcp", c.AdminAddress.String())
	if err != nil {
		return nil, fmt.Errorf("admin server: %w", err)
	}
	return l, nil
}

// run starts every goroutine of the agent and waits for all of them.
func (a *agent) run(ctx context.Context, adminListener net.Listener) error {
	serving, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	helping, stop := context.WithCancel(context.WithoutCancel(ctx)) // outlives the drain
	defer stop()
	unwatch := context.AfterFunc(serving, a.startDrain)
	defer unwatch()

	addresses := Addresses{HTTP: a.server.Addresses()}
	var helpers sync.WaitGroup
	helpers.Go(func() { a.listen(helping) })
	if a.state.network != nil {
		helpers.Go(func() { followNetwork(helping, a.state.network.Run, a.config.Logger) })
	}
	helpers.Go(func() {
		if err := a.follow(helping); err != nil {
			fail(err)
		}
	})
	if adminListener != nil {
		addresses.Admin = adminListener.Addr().(*net.TCPAddr).AddrPort()
		helpers.Go(func() {
			if err := a.serveAdmin(helping, adminListener); err != nil {
				fail(err)
			}
		})
	}
	reported := a.startReport(serving)
	err := a.serve(serving, addresses)
	reported()
	stop()
	helpers.Wait()
	if err == nil && ctx.Err() == nil {
		err = context.Cause(serving)
	}
	a.config.Logger.Info("stopped", "err", err)
	return err
}

// serve runs the data path from the first table to the end of the drain.
func (a *agent) serve(ctx context.Context, addresses Addresses) error {
	select {
	case <-a.tables.first:
		a.state.ready.Store(true)
		a.config.Logger.Info("ready", "listener", addresses.HTTP, "admin", addresses.Admin, "workers", a.config.Workers,
			"version", a.config.Build.Version)
		if a.config.Started != nil {
			a.config.Started(addresses)
		}
	case <-ctx.Done():
		a.server.Kill() // nothing was served yet: only the sockets are to be closed
	}
	return a.server.Run(ctx)
}

func (a *agent) startDrain() {
	a.state.draining.Store(true)
	a.config.Logger.Info("draining", "timeout", a.config.DrainTimeout)
}

// listen does what is asked from outside until ctx ends.
func (a *agent) listen(ctx context.Context) {
	kill := a.config.Kill
	for {
		select {
		case <-ctx.Done():
			return
		case <-kill:
			kill = nil
			a.config.Logger.Warn("ended before the drain was over")
			a.server.Kill()
			if a.reporter != nil {
				a.reporter.Kill()
			}
		case <-a.config.Reopen:
			if a.log == nil {
				continue
			}
			if err := a.log.reopen(); err != nil {
				a.config.Logger.Error("the access log goes on in the old file", "err", err)
			}
		}
	}
}

// retryAfter is the time between two attempts to read a source that broke.
const retryAfter = time.Second

// follow reads objects until ctx ends. A source that breaks before the first set
// is an error; later it is read anew, and what is in force stays in force.
func (a *agent) follow(ctx context.Context) error {
	for {
		err := a.source.Run(ctx, a.tables.apply)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = errors.New("ended by itself")
		}
		err = fmt.Errorf("read objects from %s: %w", a.sourceName, err)
		if !a.tables.started() {
			return err
		}
		a.state.sourceErrors.Add(1)
		a.config.Logger.Warn("changes are not seen until the source works again", "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryAfter):
		}
	}
}
