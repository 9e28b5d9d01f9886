package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"github.com/weirproxy/weir/agent"
)

// flags returns the agent's flags, bound to o.
func (o *agentOptions) flags() []cli.Flag {
	all := []cli.Flag{
		value(groupObjects, "source", choice{to: &o.source, words: []string{"dir", "kube"}},
			"where objects come from: dir, the directory --manifests; kube, an API server (default: dir with --manifests, "+
				"kube with --kubeconfig or in a pod)"),
	}
	all = append(all, o.kubeFlags()...)
	all = append(all, objectFlags(&o.config)...)
	all = append(all, o.listenFlags()...)
	all = append(all, o.workerFlags()...)
	all = append(all, o.clientFlags()...)
	all = append(all, o.upstreamFlags()...)
	all = append(all, o.forwardFlags()...)
	all = append(all, o.statusFlags()...)
	return append(all, o.logFlags()...)
}

func (o *agentOptions) kubeFlags() []cli.Flag {
	return []cli.Flag{
		value(groupObjects, "kubeconfig", name{to: &o.kube.Kubeconfig},
			"`FILE` that says where the API server is and who Weir is there (default: as a pod does)"),
		value(groupObjects, "ingress-selector", name{to: &o.kube.IngressSelector, check: agent.CheckSelector},
			"see only Ingresses whose labels match `SELECTOR`, as team=a,tier!=test; with the source kube"),
		value(groupObjects, "namespace-selector", name{to: &o.kube.NamespaceSelector, check: agent.CheckSelector},
			"see only Ingresses in namespaces whose labels match `SELECTOR`; with the source kube"),
	}
}

func (o *agentOptions) listenFlags() []cli.Flag {
	c := &o.config
	return []cli.Flag{
		several(groupListen, "http-address", addresses(&c.HTTPAddresses),
			"serve HTTP on `ADDRESS:PORT`; :PORT means all addresses, IPv4 and, if the machine has it, IPv6"),
		value(groupListen, "admin-address", address{&c.AdminAddress},
			"serve /metrics, /healthz, /readyz and /debug/ on `ADDRESS:PORT`"),
		value(groupListen, "drain-timeout", span{&c.DrainTimeout, time.Millisecond, 24 * time.Hour},
			"after SIGTERM wait at most `DURATION` for open connections"),
	}
}

func (o *agentOptions) workerFlags() []cli.Flag {
	c := &o.config
	return []cli.Flag{
		value(groupWorkers, "workers", number{&c.Workers, 1, 1024, "auto"},
			"run `N` worker loops; auto: one for each CPU of the affinity mask and the cgroup's quota"),
		toggle(groupWorkers, "pin-workers", &c.PinWorkers,
			"pin each worker to one CPU"),
		value(groupWorkers, "accept-policy", choice{
			to:    &c.AcceptPolicy,
			words: []string{"shared", "fountain", "hash", "cpu", "least-loaded"},
		}, "which worker gets a new connection. shared: the first that accepts; fountain: the first of those below "+
			"--fountain-mark; hash: by a hash of the addresses; cpu: that of the CPU which handles the SYN; least-loaded: "+
			"the one with the fewest connections and exchanges. The last two need BPF, else hash is used; among the last "+
			"three it can be changed at run time: PUT /accept-policy"),
		bpfFlag(&c.BPF),
		value(groupWorkers, "fountain-mark", number{&c.FountainMark, 1, 1 << 20, ""},
			"with fountain: a worker is full at `N` connections, then the next one gets some"),
	}
}

func (o *agentOptions) clientFlags() []cli.Flag {
	l := &o.config.Limits
	return []cli.Flag{
		value(groupClient, "head-bytes-max", size{&l.HeadBytesMax, 1 << 10, 128 << 10},
			"`BYTES` of a request's head; else 431"),
		value(groupClient, "line-bytes-max", size{&l.LineBytesMax, 512, 128 << 10},
			"`BYTES` of one line of it; else 431, or 414 for the first line"),
		value(groupClient, "fields-max", number{&l.FieldsMax, 1, 256, ""},
			"`N` header fields of a request; else 431. An answer may have 256, whatever is set here"),
		value(groupClient, "client-head-timeout", span{&l.HeadTimeout, time.Millisecond, time.Hour},
			"`DURATION` from the first byte of a head to its last; else 408"),
		value(groupClient, "client-body-timeout", span{&l.BodyTimeout, time.Millisecond, time.Hour},
			"`DURATION` between two pieces of a request's body; else 408"),
		value(groupClient, "client-idle-timeout", span{&l.IdleTimeout, time.Millisecond, 24 * time.Hour},
			"close a connection after `DURATION` without a request"),
		value(groupClient, "client-lifetime-max", span{&l.LifetimeMax, time.Second, 1000 * time.Hour},
			"after `DURATION` the next answer ends its connection"),
		value(groupClient, "requests-max", number{&l.RequestsMax, 1, 1 << 30, "unlimited"},
			"serve `N` requests on one connection"),
		value(groupClient, "connections-max", number{&l.ConnectionsMax, 1, 1 << 30, "auto"},
			"hold `N` client connections, divided among the workers, of which each holds at least one; "+
				"auto: as many as the limit of open files allows"),
	}
}

func (o *agentOptions) upstreamFlags() []cli.Flag {
	u := &o.config.Upstream
	return []cli.Flag{
		value(groupUp, "response-head-bytes-max", size{&o.config.Limits.ResponseHeadBytesMax, 1 << 10, 128 << 10},
			"`BYTES` of an answer's head; else 502"),
		value(groupUp, "upstream-idle-max", number{&u.IdleMax, 1, 1 << 20, ""},
			"keep `N` idle connections to endpoints per worker"),
		value(groupUp, "upstream-idle-timeout", span{&u.IdleTimeout, time.Millisecond, 24 * time.Hour},
			"close an idle connection to an endpoint after `DURATION`; keep it below the endpoints' own"),
		value(groupUp, "upstream-requests-max", number{&u.RequestsMax, 1, 1 << 30, ""},
			"send `N` requests on one connection"),
		value(groupUp, "upstream-lifetime-max", span{&u.LifetimeMax, time.Second, 1000 * time.Hour},
			"reuse no connection older than `DURATION`"),
		value(groupUp, "upstream-hedge-after", span{&u.HedgeAfter, time.Millisecond, time.Minute},
			"a connect that takes longer than `DURATION` starts another to the next endpoint"),
	}
}

func (o *agentOptions) forwardFlags() []cli.Flag {
	f := &o.config.Forwarded
	return []cli.Flag{
		several(groupForward, "trusted-proxy", prefixes(&f.Trust),
			"believe X-Forwarded-* from peers in the network `CIDR` (default: from nobody)"),
		toggle(groupForward, "append-forwarded-for", &f.AppendFull,
			"append to X-Forwarded-For instead of replacing it"),
		toggle(groupForward, "request-id", &o.requestID,
			"add X-Request-ID to requests that have none"),
		toggle(groupForward, "underscores-in-headers", &f.Underscores,
			"pass on header fields with '_' in their name instead of dropping them"),
	}
}

func (o *agentOptions) logFlags() []cli.Flag {
	c := &o.config
	return []cli.Flag{
		value(groupLog, "access-log", choice{to: &c.AccessLog, words: []string{"off", "json", "nginx"}},
			"one line per request: off, json, or nginx, the format of ingress-nginx"),
		value(groupLog, "access-log-file", name{to: &c.AccessLogFile},
			"append the access log to `FILE` (default: standard output)"),
		value(groupLog, "log-level", choice{to: &o.logLevel, words: []string{"debug", "info", "warn", "error"}},
			"the least that is logged on standard error: debug, info, warn or error"),
		value(groupLog, "log-format", choice{to: &o.logFormat, words: []string{"text", "json"}},
			"text or json"),
	}
}
