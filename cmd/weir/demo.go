package main

import (
	"embed"
	"net/netip"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
)

//go:embed demo
var demoFiles embed.FS

func demoCommand() *cli.Command {
	o := defaultOptions()
	c := &o.config
	c.HTTPAddresses = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8080")}
	c.PinWorkers = false // it shares the machine with its own backends and clients
	c.DrainTimeout = 10 * time.Second
	o.logLevel = "warn"
	var flags []cli.Flag
	for _, f := range o.flags() {
		switch f.Names()[0] {
		case "http-address", "admin-address", "workers", "access-log", "log-level":
			flags = append(flags, f)
		}
	}
	return &cli.Command{
		Name:      "demo",
		Usage:     "try Weir without a cluster: two small backends, sample manifests, curl lines to try",
		ArgsUsage: " ",
		Description: "Ctrl-C drains and ends with exit code 0; a second Ctrl-C ends at once. The manifests are written to\n" +
			"a temporary directory, where they may be edited meanwhile; it is removed at the end.",
		Flags: flags,
		Action: func(x *cli.Context) error {
			if err := noArguments(x); err != nil {
				return err
			}
			if err := o.checkAddresses(); err != nil {
				return err
			}
			o.config.Logger = o.logger(x.App.ErrWriter)
			ctx, stop := watch(x.Context, &o.config, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			defer stop()
			return demo(ctx, o.config, x.App.Writer)
		},
	}
}
