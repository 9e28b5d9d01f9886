package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// statusFlags say what is written to the API server.
func (o *agentOptions) statusFlags() []cli.Flag {
	r := &o.kube.Reporting
	return []cli.Flag{
		toggle(groupStatus, "update-status", &r.Status,
			"write the addresses of Weir into the status of the Ingresses that it serves"),
		several(groupStatus, "publish-address", published(&r.Addresses),
			"write `ADDRESS`, an IP address or a host name (default: the addresses of the nodes that run Weir)"),
		value(groupStatus, "publish-service", name{to: &r.Service, check: namespacedName},
			"write the addresses of the Service `NAMESPACE/NAME`"),
		toggle(groupStatus, "update-status-on-shutdown", &r.ClearAtEnd,
			"the last agent of the installation to end removes them"),
		value(groupStatus, "report-rate", number{&r.Rate, 1, 1000, ""},
			"write at most `N` statuses, and as many Events, per second"),
		value(groupStatus, "election-id", name{to: &r.Lease, check: leaseName},
			"the holder of the Lease `NAME` writes; each installation in a namespace needs its own"),
		besides(value(groupStatus, "pod-namespace", name{to: &r.Namespace, check: leaseName},
			"the Leases are in `NAMESPACE` (default: that of the pod, or else \"default\")"), "POD_NAMESPACE"),
		besides(value(groupStatus, "pod-name", name{to: &r.Identity},
			"`NAME` of this agent in the election and in Events (default: the host name)"), "POD_NAME"),
	}
}

// besides lets an environment variable as the downward API commonly sets it give
// the flag's value too.
func besides(f cli.Flag, variable string) cli.Flag {
	g := f.(*cli.GenericFlag)
	g.EnvVars = append(g.EnvVars, variable)
	return g
}

// leaseName checks what can be part of the name of a Lease.
func leaseName(s string) error {
	if len(s) > 50 {
		return fmt.Errorf("want at most 50 bytes")
	}
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (c != '-' || i == 0 || i == len(s)-1) {
			return fmt.Errorf("want lower-case letters, digits and '-' between them")
		}
	}
	return nil
}

// checkStatus refuses what contradicts or has no effect among statusFlags.
func (o *agentOptions) checkStatus(c *cli.Context) error {
	r := &o.kube.Reporting
	for _, f := range o.statusFlags() {
		// What the downward API gives may be there whatever the source.
		flag := f.Names()[0]
		if o.config.Kube == nil && c.IsSet(flag) && !strings.HasPrefix(flag, "pod-") {
			return usagef("--%s has no effect with --source dir; want --source kube", flag)
		}
	}
	for _, flag := range []string{"publish-address", "publish-service", "update-status-on-shutdown"} {
		if c.IsSet(flag) && !r.Status {
			return usagef("--%s has no effect with --update-status=false", flag)
		}
	}
	if len(r.Addresses) > 0 && r.Service != "" {
		return usagef("--publish-service %s has no effect with --publish-address %s; give one of them", r.Service, r.Addresses[0])
	}
	return nil
}
