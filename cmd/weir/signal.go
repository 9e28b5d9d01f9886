package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/weirproxy/weir/agent"
)

// serve runs the agent until a signal ends it.
func serve(ctx context.Context, c agent.Config) error {
	signal.Ignore(syscall.SIGHUP)
	b := agent.Version(version, commit)
	c.Build = &b
	ctx, stop := watch(ctx, &c, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return agent.Run(ctx, c)
}

// watch makes the first of ends cancel the returned context and the second kill
// what c configures; SIGUSR1 opens its log again. stop ends that and waits.
func watch(ctx context.Context, c *agent.Config, ends ...os.Signal) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	end := make(chan os.Signal, 2)
	signal.Notify(end, ends...)
	rotate := make(chan os.Signal, 1)
	signal.Notify(rotate, syscall.SIGUSR1)
	kill, reopen := make(chan struct{}), make(chan struct{}, 1)
	c.Kill, c.Reopen = kill, reopen
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for count := 0; ; {
			select {
			case <-end:
				count++
				cancel()
				if count == 2 {
					close(kill)
				}
			case <-rotate:
				select {
				case reopen <- struct{}{}:
				default: // it is about to be opened anyway
				}
			case <-quit:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(end)
		signal.Stop(rotate)
		close(quit)
		<-done
		cancel()
	}
}
