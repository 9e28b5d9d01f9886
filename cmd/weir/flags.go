package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/weirproxy/weir/agent"
)

// The groups of flags in the help text.
const (
	groupObjects = "Objects:"
	groupListen  = "Addresses:"
	groupWorkers = "Workers:"
	groupClient  = "Limits of the client's side:"
	groupUp      = "Limits of the endpoints' side:"
	groupForward = "Forwarded header fields:"
	groupStatus  = "Status and Events, with the source kube:"
	groupLog     = "Logs:"
)

// env returns the environment variable of a flag.
func env(flag string) []string {
	return []string{"WEIR_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
}

// value makes a flag that is parsed by v, whose present value is the default.
func value(group, flag string, v cli.Generic, usage string) cli.Flag {
	return &cli.GenericFlag{Name: flag, Category: group, Usage: usage, Value: v, EnvVars: env(flag)}
}

// several makes a flag that may be repeated.
func several(group, flag string, v *values, usage string) cli.Flag {
	return newList(cli.GenericFlag{Name: flag, Category: group, Usage: usage, EnvVars: env(flag)}, v)
}

// toggle makes a flag that is true or false.
func toggle(group, flag string, to *bool, usage string) cli.Flag {
	return &cli.BoolFlag{Name: flag, Category: group, Usage: usage, Value: *to, Destination: to, EnvVars: env(flag)}
}

// objectFlags are those of every command that reads manifests.
func objectFlags(c *agent.Config) []cli.Flag {
	o := &c.Objects
	return []cli.Flag{
		value(groupObjects, "manifests", name{to: &c.Manifests},
			"`DIR` of Kubernetes objects in YAML or JSON files"),
		value(groupObjects, "ingress-class", name{to: &o.IngressClass},
			"serve only the IngressClass `NAME` (default: every class of the controllers)"),
		several(groupObjects, "controller-class", words(&o.ControllerClasses),
			"serve classes of the controller `NAME` (default: weir.io/ingress and k8s.io/ingress-nginx)"),
		toggle(groupObjects, "watch-ingress-without-class", &o.WatchWithoutClass,
			"serve an Ingress without class even if no class is the default"),
		several(groupObjects, "watch-namespace", words(&o.WatchNamespaces),
			"read only objects of `NAMESPACE` (default: all)"),
		value(groupObjects, "configmap", name{to: &o.ConfigMap, check: namespacedName},
			"ConfigMap `NAMESPACE/NAME` with global settings as ingress-nginx has them"),
		toggle(groupObjects, "shared-hosts", &o.SharedHosts,
			"let several namespaces have rules for one host, instead of the first that claimed it"),
		besides(value(groupObjects, "node-name", name{to: &o.NodeName},
			"Weir runs on the node `NAME`: its endpoints are local to it"), "NODE_NAME"),
		value(groupObjects, "zone", name{to: &o.Zone},
			"Weir runs in the topology zone `NAME` (default: that of its Node object)"),
	}
}
