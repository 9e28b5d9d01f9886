package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/weirproxy/weir/agent"
)

// agentOptions are the values of the agent's flags.
type agentOptions struct {
	config              agent.Config
	source              string
	kube                agent.Kube
	logLevel, logFormat string
	requestID           bool
}

func agentCommand() *cli.Command {
	o := defaultOptions()
	return &cli.Command{
		Name:  "agent",
		Usage: "serve what Kubernetes objects ask for",
		Description: "SIGTERM and SIGINT begin the drain: /readyz answers 503 at once, connections are still accepted and\n" +
			"told to close, and the agent ends with exit code 0 when none is left or the drain timeout has passed.\n" +
			"A second such signal ends it at once. SIGUSR1 opens the access log file again. SIGHUP is ignored: files\n" +
			"are watched, their changes take effect by themselves.",
		ArgsUsage: " ",
		Flags:     o.flags(),
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			if err := o.check(c); err != nil {
				return err
			}
			o.config.Logger = o.logger(c.App.ErrWriter)
			return serve(c.Context, o.config)
		},
	}
}

// defaultOptions are what --help shows as defaults.
func defaultOptions() *agentOptions {
	o := &agentOptions{logLevel: "info", logFormat: "text", requestID: true}
	r := &o.kube.Reporting
	r.Status, r.ClearAtEnd, r.Rate, r.Lease = true, true, 20, "weir"
	c := &o.config
	c.HTTPAddresses = both(80)
	c.AdminAddress = netip.MustParseAddrPort("127.0.0.1:9901")
	c.AcceptPolicy, c.FountainMark, c.PinWorkers = "shared", 256, true
	c.BPF, c.Pins = "auto", agent.Pins
	c.DrainTimeout = 240 * time.Second
	c.AccessLog = "off"
	c.Limits.HeadBytesMax, c.Limits.LineBytesMax, c.Limits.FieldsMax = 32<<10, 16<<10, 128
	c.Limits.ResponseHeadBytesMax = 64 << 10
	c.Limits.HeadTimeout, c.Limits.BodyTimeout, c.Limits.IdleTimeout = 10*time.Second, 60*time.Second, 75*time.Second
	c.Limits.LifetimeMax = time.Hour
	c.Upstream.IdleMax, c.Upstream.IdleTimeout = 320, 55*time.Second
	c.Upstream.RequestsMax, c.Upstream.LifetimeMax = 10_000, time.Hour
	c.Upstream.HedgeAfter = 250 * time.Millisecond
	return o
}

// both returns the unspecified addresses of both families, or of IPv4 alone on a
// machine without IPv6.
func both(port uint16) []netip.AddrPort {
	out := []netip.AddrPort{netip.AddrPortFrom(netip.IPv4Unspecified(), port)}
	if l, err := net.Listen("tcp6", "[::]:0"); err == nil {
		l.Close()
		out = append(out, netip.AddrPortFrom(netip.IPv6Unspecified(), port))
	}
	return out
}

// check refuses what contradicts or has no effect.
func (o *agentOptions) check(c *cli.Context) error {
	if err := o.checkSource(); err != nil {
		return err
	}
	switch {
	case c.IsSet("fountain-mark") && o.config.AcceptPolicy != "fountain":
		return usagef("--fountain-mark %d has no effect with --accept-policy %s; want --accept-policy fountain",
			o.config.FountainMark, o.config.AcceptPolicy)
	case o.config.BPF == "require" && (o.config.AcceptPolicy == "shared" || o.config.AcceptPolicy == "fountain"):
		return usagef("--bpf %s has no effect with --accept-policy %s; want --accept-policy hash, cpu or least-loaded",
			o.config.BPF, o.config.AcceptPolicy)
	case o.config.AcceptPolicy == "cpu" && !o.config.PinWorkers:
		return usagef("--accept-policy cpu has no effect with --pin-workers=false: a worker has no CPU then")
	case o.config.AccessLogFile != "" && o.config.AccessLog == "off":
		return usagef("--access-log-file %s has no effect with --access-log off; want --access-log json or nginx",
			o.config.AccessLogFile)
	case o.config.Limits.LineBytesMax > o.config.Limits.HeadBytesMax:
		return usagef("--line-bytes-max %s is more than --head-bytes-max %s; want at most that",
			byteText(o.config.Limits.LineBytesMax), byteText(o.config.Limits.HeadBytesMax))
	}
	o.config.Forwarded.NoRequestID = !o.requestID
	if err := o.checkStatus(c); err != nil {
		return err
	}
	if err := o.checkConnections(); err != nil {
		return err
	}
	return o.checkAddresses()
}

// checkSource decides where objects come from and refuses what has no effect there.
func (o *agentOptions) checkSource() error {
	pod := agent.InCluster()
	switch {
	case o.source != "":
	case o.config.Manifests != "":
		o.source = "dir"
	case o.kube.Kubeconfig != "" || pod:
		o.source = "kube"
	default:
		return usagef("no source of objects: give --manifests DIR, or --kubeconfig FILE")
	}
	const text = "--%s has no effect with --source %s; want --source %s"
	if o.source == "kube" {
		switch {
		case o.config.Manifests != "":
			return usagef(text, "manifests", "kube", "dir")
		case o.kube.Kubeconfig == "" && !pod:
			return usagef("--source kube: this is not a pod; give --kubeconfig FILE")
		}
		o.config.Kube = &o.kube
		return nil
	}
	for _, f := range []struct{ flag, value string }{
		{"kubeconfig", o.kube.Kubeconfig}, {"ingress-selector", o.kube.IngressSelector}, {"namespace-selector", o.kube.NamespaceSelector},
	} {
		if f.value != "" {
			return usagef(text, f.flag, "dir", "kube")
		}
	}
	if o.config.Manifests == "" {
		return usagef("--source dir: give --manifests DIR")
	}
	return nil
}

// checkConnections refuses fewer connections than workers: each holds at least one.
func (o *agentOptions) checkConnections() error {
	most, workers, text := o.config.Limits.ConnectionsMax, o.config.Workers, ""
	if most == 0 {
		return nil
	}
	if workers == 0 {
		text = "auto, here "
		var err error
		if workers, err = agent.AllowedCPUs(os.DirFS("/")); err != nil {
			return fmt.Errorf("count the CPUs for --workers auto: %w", err)
		}
	}
	if most < workers {
		return usagef("--connections-max %d is less than --workers %s%d, of which each holds at least one; want at least that",
			most, text, workers)
	}
	return nil
}

// checkAddresses refuses addresses that can't both be bound.
func (o *agentOptions) checkAddresses() error {
	const text = "%s %s and %s %s overlap; choose another port for one of them"
	for i, a := range o.config.HTTPAddresses {
		for _, b := range o.config.HTTPAddresses[:i] {
			if a.Addr().Is4() == b.Addr().Is4() && overlap(a, b) {
				return usagef(text, "--http-address", b, "--http-address", a)
			}
		}
		// The admin server's unspecified address is that of both families.
		b := o.config.AdminAddress
		if overlap(a, b) && (a.Addr().Is4() == b.Addr().Unmap().Is4() || b.Addr().IsUnspecified()) {
			return usagef(text, "--http-address", a, "--admin-address", b)
		}
	}
	return nil
}

// overlap reports whether a and b, if of one family, are partly the same.
func overlap(a, b netip.AddrPort) bool {
	same := a.Addr().Unmap() == b.Addr().Unmap() || a.Addr().IsUnspecified() || b.Addr().IsUnspecified()
	return a.Port() == b.Port() && a.Port() != 0 && same
}

// logger writes to w what --log-level and --log-format say.
func (o *agentOptions) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		panic(fmt.Sprintf("log level %q passed its check", o.logLevel))
	}
	h := &slog.HandlerOptions{Level: level}
	if o.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, h))
	}
	return slog.New(slog.NewTextHandler(w, h))
}
