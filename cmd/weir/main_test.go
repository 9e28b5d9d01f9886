package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// weir carries out a command line and returns what it printed.
func weir(args ...string) (code int, stdout, stderr string) {
	var out, errors bytes.Buffer
	code = run(args, &out, &errors)
	return code, out.String(), errors.String()
}

// oneDash finds a long flag that is written with one dash.
var oneDash = regexp.MustCompile(`(^|[^-\w])-[a-z][a-z-]+`)

func TestWrongUsageNamesFlagValueAndWhatIsAllowed(t *testing.T) {
	dir := t.TempDir()
	with := func(args ...string) []string { return append([]string{"agent", "--manifests", dir}, args...) }
	for _, tt := range []struct {
		args []string
		says []string // on standard error
	}{
		{[]string{"serve"}, []string{`"serve"`, "agent, demo, explain, lint, check, maps, version or help"}},
		{[]string{"help", "serve"}, []string{`"serve"`, "agent, demo, explain, lint, check, maps, version or help"}},
		{[]string{"help", "agent", "more"}, []string{`"more"`}},
		{[]string{"--workers", "2"}, []string{"unknown flag --workers"}},
		{[]string{"agent", "--worker", "2"}, []string{"weir agent: unknown flag --worker", "See: weir agent --help"}},
		{[]string{"agent"}, []string{"--manifests DIR", "--kubeconfig FILE"}},
		{[]string{"agent", "--source", "kube"}, []string{"--source kube", "not a pod", "--kubeconfig FILE"}},
		{with("--source", "kube"), []string{"--manifests has no effect with --source kube", "--source dir"}},
		{with("--kubeconfig", "/k"), []string{"--kubeconfig has no effect with --source dir", "--source kube"}},
		{with("--ingress-selector", "a=b"), []string{"--ingress-selector has no effect with --source dir", "--source kube"}},
		{with("--namespace-selector", "a=b"), []string{"--namespace-selector has no effect with --source dir", "--source kube"}},
		{[]string{"agent", "--kubeconfig", "/k", "--ingress-selector", "a=b=c"}, []string{`"a=b=c"`, "--ingress-selector", "want labels as"}},
		{[]string{"agent", "--kubeconfig", "/k", "--publish-address", "10.0.0.256"}, []string{`"10.0.0.256"`, "--publish-address", "IP address or a host name"}},
		{[]string{"agent", "--kubeconfig", "/k", "--publish-service", "a"}, []string{"--publish-service", "NAMESPACE/NAME"}},
		{[]string{"agent", "--kubeconfig", "/k", "--publish-service", "a/b", "--publish-address", "10.0.0.1"}, []string{"--publish-service a/b has no effect", "--publish-address 10.0.0.1"}},
		{[]string{"agent", "--kubeconfig", "/k", "--update-status=false", "--publish-address", "10.0.0.1"}, []string{"--publish-address has no effect with --update-status=false"}},
		{[]string{"agent", "--kubeconfig", "/k", "--election-id", "Weir"}, []string{`"Weir"`, "--election-id", "lower-case"}},
		{with("--publish-address", "10.0.0.1"), []string{"--publish-address has no effect with --source dir", "--source kube"}},
		{[]string{"agent", "--source", "dir"}, []string{"--manifests DIR"}},
		{with("--source", "etcd"), []string{`"etcd"`, "--source", "dir or kube"}},
		{with("extra"), []string{`"extra"`, "flags only"}},
		{with("--manifests"), []string{"--manifests", "needs a value"}},
		{with("--manifests", ""), []string{"--manifests", "want a value"}},
		{with("--workers", "0"), []string{`"0"`, "--workers", "from 1 to 1024, or auto"}},
		{with("--workers", "many"), []string{`"many"`, "--workers", "from 1 to 1024, or auto"}},
		{with("--accept-policy", "random"), []string{`"random"`, "--accept-policy", "shared, fountain, hash, cpu or least-loaded"}},
		{with("--accept-policy", "cpu", "--pin-workers=false"), []string{"--accept-policy cpu", "--pin-workers=false"}},
		{with("--bpf", "require"), []string{"--bpf require has no effect with --accept-policy shared", "hash, cpu or least-loaded"}},
		{with("--bpf", "on"), []string{`"on"`, "--bpf", "auto, off or require"}},
		{[]string{"check", "now"}, []string{`"now"`, "flags only"}},
		{[]string{"maps", "all"}, []string{`"all"`, "flags only"}},
		{with("--fountain-mark", "5"), []string{"--fountain-mark 5", "--accept-policy shared", "fountain"}},
		{with("--accept-policy", "fountain", "--fountain-mark", "0"), []string{`"0"`, "--fountain-mark", "from 1 to"}},
		{with("--http-address", "localhost:80"), []string{`"localhost:80"`, "--http-address", "0.0.0.0:80"}},
		{with("--http-address", ":99999"), []string{`":99999"`, "--http-address", ":80 for both"}},
		{with("--http-address", "127.0.0.1:80", "--http-address", "127.0.0.1:80"), []string{"127.0.0.1:80", "--http-address", "twice"}},
		{with("--http-address", ":80", "--http-address", "127.0.0.1:80"), []string{"--http-address 0.0.0.0:80 and --http-address 127.0.0.1:80"}},
		{with("--http-address", "[::1]:80,[::]:80"), []string{"--http-address [::1]:80 and --http-address [::]:80"}},
		{with("--http-address", "127.0.0.1:81", "--admin-address", "127.0.0.1:81"), []string{"--http-address 127.0.0.1:81 and --admin-address 127.0.0.1:81"}},
		{with("--http-address", ":9901"), []string{"--http-address 0.0.0.0:9901 and --admin-address 127.0.0.1:9901"}},
		{with("--http-address", "127.0.0.1:81", "--admin-address", "0.0.0.0:81"), []string{"--http-address 127.0.0.1:81 and --admin-address 0.0.0.0:81"}},
		{with("--http-address", "127.0.0.1:81", "--admin-address", "[::]:81"), []string{"--http-address 127.0.0.1:81 and --admin-address [::]:81"}},
		{with("--http-address", "[::1]:81", "--admin-address", "0.0.0.0:81"), []string{"--http-address [::1]:81 and --admin-address 0.0.0.0:81"}},
		{with("--http-address", "127.0.0.1:81", "--admin-address", "[::ffff:127.0.0.1]:81"), []string{"--http-address 127.0.0.1:81 and --admin-address"}},
		{[]string{"demo", "--http-address", "127.0.0.1:9901"}, []string{"--http-address 127.0.0.1:9901 and --admin-address 127.0.0.1:9901"}},
		{with("--admin-address", "9901"), []string{`"9901"`, "--admin-address", "127.0.0.1:9901"}},
		{with("--drain-timeout", "240"), []string{`"240"`, "--drain-timeout", "from 1ms to 24h", "1m30s"}},
		{with("--drain-timeout", "-1s"), []string{`"-1s"`, "--drain-timeout", "from 1ms to 24h"}},
		{with("--configmap", "weir"), []string{`"weir"`, "--configmap", "NAMESPACE/NAME"}},
		{with("--configmap", "a/b/c"), []string{`"a/b/c"`, "--configmap", "NAMESPACE/NAME"}},
		{with("--ingress-class", ""), []string{"--ingress-class", "want a value"}},
		{with("--controller-class", "a,,b"), []string{`"a,,b"`, "--controller-class", "want a value"}},
		{with("--access-log", "apache"), []string{`"apache"`, "--access-log", "off, json or nginx"}},
		{with("--access-log-file", "/tmp/x"), []string{"--access-log-file /tmp/x", "--access-log off", "json or nginx"}},
		{with("--log-level", "loud"), []string{`"loud"`, "--log-level", "debug, info, warn or error"}},
		{with("--log-format", "xml"), []string{`"xml"`, "--log-format", "text or json"}},
		{with("--head-bytes-max", "1"), []string{`"1"`, "--head-bytes-max", "from 1k to 128k"}},
		{with("--head-bytes-max", "99999999m"), []string{`"99999999m"`, "--head-bytes-max", "from 1k to 128k"}},
		{with("--head-bytes-max", "8k"), []string{"--line-bytes-max 16k", "--head-bytes-max 8k"}},
		{with("--fields-max", "257"), []string{`"257"`, "--fields-max", "from 1 to 256"}},
		{with("--requests-max", "0"), []string{`"0"`, "--requests-max", "or unlimited"}},
		{with("--connections-max", "-1"), []string{`"-1"`, "--connections-max", "or auto"}},
		{with("--connections-max", "3", "--workers", "4"), []string{"--connections-max 3", "--workers 4"}},
		{with("--upstream-idle-max", "0"), []string{`"0"`, "--upstream-idle-max", "from 1 to"}},
		{with("--trusted-proxy", "10.0.0.1/8"), []string{`"10.0.0.1/8"`, "--trusted-proxy", "want 10.0.0.0/8"}},
		{with("--trusted-proxy", "ten"), []string{`"ten"`, "--trusted-proxy", "10.0.0.0/8"}},
		{with("--pin-workers=perhaps"), []string{`"perhaps"`, "--pin-workers", "true or false"}},
		{[]string{"demo", "--manifests", dir}, []string{"unknown flag --manifests"}},
		{[]string{"demo", "now"}, []string{`"now"`}},
		{[]string{"explain"}, []string{"METHOD URL"}},
		{[]string{"explain", "GET", "http://a/", "more", "--manifests", dir}, []string{"more", "METHOD URL"}},
		{[]string{"explain", "GET", "http://a/"}, []string{"--manifests DIR"}},
		{[]string{"explain", "GET", "https://a/", "--manifests", dir}, []string{`"https://a/"`, "http://"}},
		{[]string{"explain", "GET", "http://a/", "-H", "X", "--manifests", dir}, []string{`"X"`, "-H", "Name: value"}},
		{[]string{"explain", "GET", "http://a/", "-o", "yaml", "--manifests", dir}, []string{`"yaml"`, "-o", "text or json"}},
		{[]string{"lint"}, []string{"--manifests DIR"}},
		{[]string{"lint", dir}, []string{"flags only"}},
		{[]string{"version", "--long"}, []string{"unknown flag --long"}},
		{[]string{"version", "please"}, []string{`"please"`, "takes none"}},
	} {
		code, stdout, stderr := weir(tt.args...)
		if code != exitUsage {
			t.Errorf("weir %q: exit code %d, want %d; stderr: %s", tt.args, code, exitUsage, stderr)
		}
		if stdout != "" {
			t.Errorf("weir %q: standard output %q, want none", tt.args, stdout)
		}
		for _, want := range tt.says {
			if !strings.Contains(stderr, want) {
				t.Errorf("weir %q: stderr %q lacks %q", tt.args, stderr, want)
			}
		}
		if flag := oneDash.FindString(stderr); flag != "" {
			t.Errorf("weir %q: stderr %q has %q with one dash", tt.args, stderr, flag)
		}
	}
}

func TestWrongEnvironmentNamesTheVariable(t *testing.T) {
	for _, tt := range []struct{ name, value, says string }{
		{"WEIR_WORKERS", "lots", "--workers: want a whole number from 1 to 1024, or auto"},
		{"WEIR_HTTP_ADDRESS", "127.0.0.1:80,nowhere", "0.0.0.0:80"},
		{"WEIR_PIN_WORKERS", "perhaps", "--pin-workers: want true or false"},
		{"WEIR_TRUSTED_PROXY", "ten", "10.0.0.0/8"},
		{"WEIR_DRAIN_TIMEOUT", "240", "1m30s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(tt.name, tt.value)
			code, _, stderr := weir("agent", "--manifests", t.TempDir())
			for _, want := range []string{tt.name, tt.value, tt.says} {
				if code != exitUsage || !strings.Contains(stderr, want) {
					t.Errorf("%s=%s: exit code %d, stderr %q, want %d and %q", tt.name, tt.value, code, stderr, exitUsage, want)
				}
			}
		})
	}
}

func TestWhatBreaksExitsWithOne(t *testing.T) {
	for _, args := range [][]string{
		{"agent", "--manifests", "/nonexistent", "--http-address", "127.0.0.1:0", "--admin-address", "127.0.0.1:0"},
		{"explain", "GET", "http://a/", "--manifests", "/nonexistent"},
		{"lint", "--manifests", "/nonexistent"},
	} {
		code, _, stderr := weir(args...)
		if code != exitBroken || !strings.Contains(stderr, "/nonexistent") || strings.Contains(stderr, "--help") {
			t.Errorf("weir %q: exit code %d, stderr %q, want %d and the directory", args, code, stderr, exitBroken)
		}
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, tt := range []struct {
		args []string
		says []string
	}{
		{nil, []string{"agent", "demo", "explain", "lint", "version"}},
		{[]string{"--help"}, []string{"COMMANDS", "Exit codes"}},
		{[]string{"agent", "--help"}, []string{"--http-address ADDRESS:PORT", "$WEIR_HTTP_ADDRESS", "(default: auto)", "SIGTERM"}},
		{[]string{"agent", "-h"}, []string{"--drain-timeout DURATION", "(default: 4m)"}},
		{[]string{"demo", "--help"}, []string{"127.0.0.1:8080", "Ctrl-C"}},
		{[]string{"explain", "--help"}, []string{"METHOD URL", "Exit codes: 0", "3 Weir would answer itself"}},
		{[]string{"lint", "--help"}, []string{"Exit codes: 0 clean", "3 something is refused"}},
		{[]string{"version"}, []string{"weir ", "commit ", "go1."}},
		{[]string{"--version"}, []string{"weir ", "commit "}},
		{[]string{"-v"}, []string{"weir ", "commit "}},
		{[]string{"help"}, []string{"COMMANDS", "Exit codes", "--version, -v"}},
		{[]string{"help", "agent"}, []string{"--http-address ADDRESS:PORT", "$WEIR_HTTP_ADDRESS", "(default: auto)"}},
		{[]string{"help", "help"}, []string{"COMMANDS"}},
		{[]string{"agent", "--help"}, []string{"divided among the workers", "An answer may have 256"}},
	} {
		code, stdout, stderr := weir(tt.args...)
		if code != 0 || stderr != "" {
			t.Errorf("weir %q: exit code %d, stderr %q, want 0 and none", tt.args, code, stderr)
		}
		for _, want := range tt.says {
			if !strings.Contains(stdout, want) {
				t.Errorf("weir %q: output lacks %q:\n%s", tt.args, want, stdout)
			}
		}
	}
}
