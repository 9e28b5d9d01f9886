package main

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/weirproxy/weir/agent"
)

// parse returns the options of the command line of an agent with a directory.
func parse(t *testing.T, args ...string) *agentOptions {
	t.Helper()
	return parseAll(t, append([]string{"--manifests", "/m"}, args...)...)
}

// parseAll returns the options of an agent's command line.
func parseAll(t *testing.T, args ...string) *agentOptions {
	t.Helper()
	o := defaultOptions()
	app := &cli.App{Name: "weir", Flags: o.flags(), Action: o.check}
	if err := app.Run(append([]string{"weir"}, args...)); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return o
}

// Each flag has a row here, and does what its row says to the configuration,
// whether it is given on the command line or in the environment.
func TestEachFlagChangesTheConfiguration(t *testing.T) {
	ports := func(list ...string) (out []netip.AddrPort) {
		for _, s := range list {
			out = append(out, netip.MustParseAddrPort(s))
		}
		return out
	}
	kube := []string{"--kubeconfig", "/k"}
	rows := map[string]struct {
		value string
		more  []string // other arguments that it needs
		want  func(*agent.Config)
	}{
		"manifests":                   {"/other", nil, func(c *agent.Config) { c.Manifests = "/other" }},
		"source":                      {"dir", nil, nil},
		"kubeconfig":                  {"/other", kube, func(c *agent.Config) { c.Kube.Kubeconfig = "/other" }},
		"ingress-selector":            {"a=b,c", kube, func(c *agent.Config) { c.Kube.IngressSelector = "a=b,c" }},
		"namespace-selector":          {"a!=b", kube, func(c *agent.Config) { c.Kube.NamespaceSelector = "a!=b" }},
		"node-name":                   {"n1", nil, func(c *agent.Config) { c.Objects.NodeName = "n1" }},
		"zone":                        {"z1", nil, func(c *agent.Config) { c.Objects.Zone = "z1" }},
		"update-status":               {"false", kube, func(c *agent.Config) { c.Kube.Reporting.Status = false }},
		"publish-address":             {"192.0.2.1,lb.example.test", kube, func(c *agent.Config) { c.Kube.Reporting.Addresses = []string{"192.0.2.1", "lb.example.test"} }},
		"publish-service":             {"a/b", kube, func(c *agent.Config) { c.Kube.Reporting.Service = "a/b" }},
		"update-status-on-shutdown":   {"false", kube, func(c *agent.Config) { c.Kube.Reporting.ClearAtEnd = false }},
		"report-rate":                 {"7", kube, func(c *agent.Config) { c.Kube.Reporting.Rate = 7 }},
		"election-id":                 {"weir-b", kube, func(c *agent.Config) { c.Kube.Reporting.Lease = "weir-b" }},
		"pod-namespace":               {"ns", kube, func(c *agent.Config) { c.Kube.Reporting.Namespace = "ns" }},
		"pod-name":                    {"weir-x", kube, func(c *agent.Config) { c.Kube.Reporting.Identity = "weir-x" }},
		"ingress-class":               {"edge", nil, func(c *agent.Config) { c.Objects.IngressClass = "edge" }},
		"controller-class":            {"a.io/x,b.io/y", nil, func(c *agent.Config) { c.Objects.ControllerClasses = []string{"a.io/x", "b.io/y"} }},
		"watch-ingress-without-class": {"true", nil, func(c *agent.Config) { c.Objects.WatchWithoutClass = true }},
		"watch-namespace":             {"a", nil, func(c *agent.Config) { c.Objects.WatchNamespaces = []string{"a"} }},
		"configmap":                   {"a/b", nil, func(c *agent.Config) { c.Objects.ConfigMap = "a/b" }},
		"shared-hosts":                {"true", nil, func(c *agent.Config) { c.Objects.SharedHosts = true }},
		"http-address":                {"[::1]:81,[::ffff:10.0.0.1]:82", nil, func(c *agent.Config) { c.HTTPAddresses = ports("[::1]:81", "10.0.0.1:82") }},
		"admin-address":               {"0.0.0.0:1", nil, func(c *agent.Config) { c.AdminAddress = netip.MustParseAddrPort("0.0.0.0:1") }},
		"drain-timeout":               {"3s", nil, func(c *agent.Config) { c.DrainTimeout = 3 * time.Second }},
		"workers":                     {"3", nil, func(c *agent.Config) { c.Workers = 3 }},
		"pin-workers":                 {"false", nil, func(c *agent.Config) { c.PinWorkers = false }},
		"accept-policy":               {"hash", nil, func(c *agent.Config) { c.AcceptPolicy = "hash" }},
		"bpf":                         {"require", []string{"--accept-policy", "hash"}, func(c *agent.Config) { c.AcceptPolicy, c.BPF = "hash", "require" }},
		"fountain-mark": {"9", []string{"--accept-policy", "fountain"}, func(c *agent.Config) {
			c.AcceptPolicy, c.FountainMark = "fountain", 9
		}},
		"head-bytes-max":          {"64k", nil, func(c *agent.Config) { c.Limits.HeadBytesMax = 64 << 10 }},
		"line-bytes-max":          {"1000", nil, func(c *agent.Config) { c.Limits.LineBytesMax = 1000 }},
		"fields-max":              {"200", nil, func(c *agent.Config) { c.Limits.FieldsMax = 200 }},
		"client-head-timeout":     {"3s", nil, func(c *agent.Config) { c.Limits.HeadTimeout = 3 * time.Second }},
		"client-body-timeout":     {"3s", nil, func(c *agent.Config) { c.Limits.BodyTimeout = 3 * time.Second }},
		"client-idle-timeout":     {"3s", nil, func(c *agent.Config) { c.Limits.IdleTimeout = 3 * time.Second }},
		"client-lifetime-max":     {"3s", nil, func(c *agent.Config) { c.Limits.LifetimeMax = 3 * time.Second }},
		"requests-max":            {"7", nil, func(c *agent.Config) { c.Limits.RequestsMax = 7 }},
		"connections-max":         {"7", []string{"--workers", "7"}, func(c *agent.Config) { c.Workers, c.Limits.ConnectionsMax = 7, 7 }},
		"response-head-bytes-max": {"128k", nil, func(c *agent.Config) { c.Limits.ResponseHeadBytesMax = 128 << 10 }},
		"upstream-idle-max":       {"7", nil, func(c *agent.Config) { c.Upstream.IdleMax = 7 }},
		"upstream-idle-timeout":   {"3s", nil, func(c *agent.Config) { c.Upstream.IdleTimeout = 3 * time.Second }},
		"upstream-requests-max":   {"7", nil, func(c *agent.Config) { c.Upstream.RequestsMax = 7 }},
		"upstream-lifetime-max":   {"3s", nil, func(c *agent.Config) { c.Upstream.LifetimeMax = 3 * time.Second }},
		"upstream-hedge-after":    {"3s", nil, func(c *agent.Config) { c.Upstream.HedgeAfter = 3 * time.Second }},
		"trusted-proxy": {"10.0.0.0/8,fd00::1", nil, func(c *agent.Config) {
			c.Forwarded.Trust = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::1/128")}
		}},
		"append-forwarded-for":   {"true", nil, func(c *agent.Config) { c.Forwarded.AppendFull = true }},
		"request-id":             {"false", nil, func(c *agent.Config) { c.Forwarded.NoRequestID = true }},
		"underscores-in-headers": {"true", nil, func(c *agent.Config) { c.Forwarded.Underscores = true }},
		"access-log":             {"nginx", nil, func(c *agent.Config) { c.AccessLog = "nginx" }},
		"access-log-file": {"/log", []string{"--access-log", "json"}, func(c *agent.Config) {
			c.AccessLog, c.AccessLogFile = "json", "/log"
		}},
		"log-level":  {"debug", nil, nil}, // see TestLogger
		"log-format": {"json", nil, nil},
	}
	for _, f := range defaultOptions().flags() {
		flag := f.Names()[0]
		row, ok := rows[flag]
		if !ok {
			t.Errorf("flag --%s has no row in this test", flag)
			continue
		}
		delete(rows, flag)
		parse := parse
		if len(row.more) > 0 && row.more[0] == kube[0] {
			parse = parseAll // there is either a directory or an API server
		}
		want := parse(t, row.more...).config
		if row.want != nil {
			row.want(&want)
		}
		got := parse(t, append(row.more, "--"+flag+"="+row.value)...).config
		if !reflect.DeepEqual(got, want) {
			t.Errorf("--%s=%s: configuration\n%+v\nwant\n%+v", flag, row.value, got, want)
		}
		variable := env(flag)[0]
		if flag == "manifests" || flag == "kubeconfig" {
			continue // it is on the command line already, which wins
		}
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, row.value)
			if got := parse(t, row.more...).config; !reflect.DeepEqual(got, want) {
				t.Errorf("%s=%s: configuration\n%+v\nwant\n%+v", variable, row.value, got, want)
			}
		})
	}
	for flag := range rows {
		t.Errorf("this test has a row for --%s, which is not a flag", flag)
	}
}

// What there is to read from decides where it is read, unless --source does.
func TestTheSourceFollowsFromWhatIsGiven(t *testing.T) {
	pod := func(t *testing.T) {
		t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
		t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	}
	for _, tt := range []struct {
		name string
		pod  bool
		args []string
		want string // source and kubeconfig or directory
	}{
		{"directory", false, []string{"--manifests", "/m"}, "dir /m"},
		{"kubeconfig", false, []string{"--kubeconfig", "/k"}, "kube /k"},
		{"pod", true, nil, "kube "},
		{"directory in a pod", true, []string{"--manifests", "/m"}, "dir /m"},
		{"said in a pod", true, []string{"--source", "kube"}, "kube "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.pod {
				pod(t)
			}
			o := parseAll(t, tt.args...)
			got := o.source + " " + o.config.Manifests
			if o.config.Kube != nil {
				got += o.config.Kube.Kubeconfig
			}
			if got != tt.want {
				t.Errorf("agent %q: source %q, want %q", tt.args, got, tt.want)
			}
		})
	}
}

func TestTheCommandLineWinsOverTheEnvironment(t *testing.T) {
	t.Setenv("WEIR_HTTP_ADDRESS", "127.0.0.1:1,127.0.0.1:2")
	t.Setenv("WEIR_WORKERS", "5")
	c := parse(t, "--http-address", "127.0.0.1:3", "--http-address", "127.0.0.1:4", "--workers", "auto").config
	if len(c.HTTPAddresses) != 2 || c.HTTPAddresses[0].Port() != 3 || c.HTTPAddresses[1].Port() != 4 || c.Workers != 0 {
		t.Errorf("addresses %v, %d workers; want those of the command line", c.HTTPAddresses, c.Workers)
	}
}

// Kubernetes sets variables like WEIR_PORT and WEIR_SERVICE_HOST in every pod that
// starts after a Service named weir.
func TestNoFlagReadsTheVariablesOfAService(t *testing.T) {
	for _, f := range defaultOptions().flags() {
		v := env(f.Names()[0])[0]
		if strings.HasPrefix(v, "WEIR_PORT") || strings.HasPrefix(v, "WEIR_SERVICE_") {
			t.Errorf("--%s reads %s, which Kubernetes sets for a Service named weir", f.Names()[0], v)
		}
	}
}

func TestAddressesThatDoNotOverlapAreTaken(t *testing.T) {
	for _, args := range [][]string{
		{"--http-address", "0.0.0.0:80,[::]:80"},
		{"--http-address", "127.0.0.1:80,127.0.0.2:80,127.0.0.1:81"},
		{"--http-address", "127.0.0.1:0,127.0.0.1:0", "--admin-address", "127.0.0.1:0"},
		{"--http-address", "10.0.0.1:9901"},
		{"--http-address", "[::]:9901"}, // of IPv6 only
	} {
		parse(t, args...)
	}
}

// A flag of one command that is no setting must not be read from a variable of so
// common a name.
func TestHeaderFieldsHaveNoVariable(t *testing.T) {
	t.Setenv("WEIR_H", "Content-Length: 99999999")
	code, stdout, stderr := weir("explain", "POST", "http://shop.example/", "--manifests", "testdata/site")
	if code != 0 {
		t.Errorf("WEIR_H changed the answer: exit code %d\n%s%s", code, stdout, stderr)
	}
	if _, help, _ := weir("explain", "--help"); strings.Contains(help, "WEIR_H]") {
		t.Errorf("the help names WEIR_H:\n%s", help)
	}
}

func TestAPortAloneMeansBothFamilies(t *testing.T) {
	c := parse(t, "--http-address", ":8080").config
	if len(c.HTTPAddresses) == 0 || c.HTTPAddresses[0].String() != "0.0.0.0:8080" {
		t.Fatalf("addresses %v, want 0.0.0.0:8080 first", c.HTTPAddresses)
	}
	if want := both(8080); !reflect.DeepEqual(c.HTTPAddresses, want) {
		t.Errorf("addresses %v, want %v", c.HTTPAddresses, want)
	}
}

func TestLogger(t *testing.T) {
	for _, tt := range []struct {
		level, format string
		want          string
	}{
		{"info", "text", "level=INFO msg=hello"},
		{"warn", "text", ""},
		{"debug", "json", `"msg":"hello"`},
	} {
		var b strings.Builder
		o := &agentOptions{logLevel: tt.level, logFormat: tt.format}
		o.logger(&b).Info("hello")
		if !strings.Contains(b.String(), tt.want) || tt.want == "" && b.Len() > 0 {
			t.Errorf("level %s, format %s: logged %q, want %q", tt.level, tt.format, b.String(), tt.want)
		}
	}
}

func TestArrangeMovesFlagsForward(t *testing.T) {
	commands := newApp(nil, nil).Commands
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"--help", "--help"},
		{"--version", "version"},
		{"-v more", "version -- more"},
		{"help", "help"},
		{"help agent", "agent --help"},
		{"help nonsense", "help -- nonsense"},
		{"explain GET URL -o json", "explain -o json -- GET URL"},
		{"explain GET -H a:b URL --manifests=D -H c:d", "explain -H a:b --manifests=D -H c:d -- GET URL"},
		{"explain GET --shared-hosts URL", "explain --shared-hosts -- GET URL"},
		{"explain -- -x URL -o json", "explain -- -x URL -o json"},
		{"explain GET URL -o", "explain -o -- GET URL"},
		{"agent --workers 2", "agent --workers 2"},
		{"agent more --unknown x", "agent --unknown -- more x"},
		{"nonsense -a b", "nonsense -a b"},
	} {
		if got := strings.Join(arrange(commands, strings.Fields(tt.in)), " "); got != tt.want {
			t.Errorf("arrange(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
