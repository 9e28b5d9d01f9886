package agent

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/l7"
)

// Config is what an agent is made from. Fields without a stated default must be
// set; the zero value of the limits and of the other durations means the default
// of package l7.
type Config struct {
	Manifests string      // directory of Kubernetes objects; or else
	Kube      *Kube       // the API server that has them
	Objects   k8s.Options // which objects count; Workers and AllowLoopback are set by Run

	HTTPAddresses []netip.AddrPort // at least one
	AdminAddress  netip.AddrPort   // not valid: no admin server

	Workers      int    // 0: AllowedCPUs
	PinWorkers   bool   // to one allowed CPU each
	AcceptPolicy string // shared (or ""), fountain, hash, cpu or least-loaded
	BPF          string // auto, require, or off (or ""): whether kernel programs are used
	Pins         string // directory on bpffs for BPF maps; "": they are not pinned
	FountainMark int    // connections

	Limits       l7.Limits
	Upstream     l7.UpstreamLimits
	Forwarded    l7.Forwarded
	DrainTimeout time.Duration

	AccessLog     string // "" = off; see l7.LogFormat
	AccessLogFile string // "" = standard output; else appended to

	Logger *slog.Logger // nil: nothing is logged
	Build  *Build       // nil: what the binary says of itself

	// Kill ends a drain at once when it is closed or receives. May be nil.
	Kill <-chan struct{}
	// Reopen opens AccessLogFile again, for log rotation. May be nil.
	Reopen <-chan struct{}
	// Started is called once, when the agent is ready. May be nil.
	Started func(Addresses)
}

// Addresses are the bound ones, with the ports that the kernel chose.
type Addresses struct {
	HTTP  []netip.AddrPort // in the order of Config.HTTPAddresses
	Admin netip.AddrPort   // not valid: no admin server
}

// complete returns c with defaults filled in. system is where /proc and /sys
// are.
func (c Config) complete(system System) (Config, error) {
	if (c.Manifests == "") == (c.Kube == nil) {
		return c, fmt.Errorf("want either a directory of manifests or an API server")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Build == nil {
		b := Version("", "")
		c.Build = &b
	}
	if c.Workers == 0 {
		n, err := AllowedCPUs(system)
		if err != nil {
			return c, fmt.Errorf("count the CPUs for the workers: %w", err)
		}
		c.Workers = n
	}
	c.Objects.Workers = c.Workers
	c.Objects.AllowLoopback = c.Kube == nil // files come from who runs the agent, not from a tenant
	return c, nil
}

// cpus returns the CPUs that workers are pinned to, none if they are not.
func (c Config) cpus(system System) ([]int, error) {
	if !c.PinWorkers {
		return nil, nil
	}
	cpus, err := affinity(system)
	if err != nil {
		return nil, fmt.Errorf("read the CPUs to pin workers to: %w", err)
	}
	return cpus, nil
}

// server returns the configuration of the data path.
func (c Config) server(log *logFile, accept *accepting, cpus []int) l7.Config {
	out := l7.Config{
		Addresses:    c.HTTPAddresses,
		Workers:      c.Workers,
		CPUs:         cpus,
		Accept:       accept.policy(),
		Loads:        accept.loads(),
		FountainMark: c.FountainMark,
		Limits:       c.Limits,
		Upstream:     c.Upstream,
		Forwarded:    c.Forwarded,
		DrainTimeout: c.DrainTimeout,
		LogFormat:    l7.LogFormat(c.AccessLog),
		Logger:       c.Logger,
	}
	if log != nil {
		out.LogTo = log
	}
	return out
}

// openLog returns where the access log goes, nil if it is off.
func (c Config) openLog() (*logFile, error) {
	if c.AccessLog == "" || c.AccessLog == string(l7.LogOff) {
		return nil, nil
	}
	if c.AccessLogFile == "" {
		return standardLog(os.Stdout), nil
	}
	return openLogFile(c.AccessLogFile)
}
