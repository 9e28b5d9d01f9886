package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirproxy/weir/agent"
)

// demo runs two backends and an agent that serves them, until ctx ends.
func demo(ctx context.Context, c agent.Config, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "weir-demo-")
	if err != nil {
		return fmt.Errorf("make a directory for the manifests: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var backends []*backend
	defer func() {
		for _, b := range backends {
			b.close()
		}
	}()
	for _, name := range []string{"one", "two"} {
		b, err := startBackend(name)
		if err != nil {
			return err
		}
		backends = append(backends, b)
	}
	if err := writeDemo(dir, backends[0].address, backends[1].address); err != nil {
		return err
	}
	build := agent.Version(version, commit)
	c.Manifests, c.Build = dir, &build
	c.Started = func(a agent.Addresses) { fmt.Fprint(out, tour(program(os.Args[0]), dir, a)) }
	var began atomic.Pointer[time.Time] // of the drain
	unwatch := context.AfterFunc(ctx, func() {
		now := time.Now()
		began.Store(&now)
	})
	defer unwatch()
	if err := agent.Run(ctx, c); err != nil {
		return err
	}
	var took time.Duration
	if b := began.Load(); b != nil {
		took = time.Since(*b)
	}
	fmt.Fprintf(out, "\n%s\n", farewell(&c, took))
	return nil
}

// farewell tells how a run of c ended whose drain took so long.
func farewell(c *agent.Config, took time.Duration) string {
	select {
	case <-c.Kill:
		return "Ended at once: what was still open was closed, not drained."
	default:
	}
	if took >= c.DrainTimeout {
		return fmt.Sprintf("Ended after the drain timeout of %s: what was still open was closed.", short(c.DrainTimeout))
	}
	return "Drained and ended."
}

// program returns what to type to run this program again: from any directory, if
// arg0, its name as it was started, holds a path.
func program(arg0 string) string {
	if !strings.Contains(arg0, "/") {
		return quoted(arg0) // found in PATH
	}
	if abs, err := filepath.Abs(arg0); err == nil {
		arg0 = abs
	}
	return quoted(arg0)
}

// quoted returns s as one word of a shell.
func quoted(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,@%"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// writeDemo writes the sample manifests, and slices for backends at one and two.
func writeDemo(dir string, one, two netip.AddrPort) error {
	files, err := fs.ReadDir(demoFiles, "demo")
	if err != nil {
		return fmt.Errorf("list the sample manifests: %w", err)
	}
	for _, f := range files {
		b, err := demoFiles.ReadFile(path.Join("demo", f.Name()))
		if err != nil {
			return fmt.Errorf("read a sample manifest: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name()), b, 0o644); err != nil {
			return fmt.Errorf("write a sample manifest: %w", err)
		}
	}
	slices := []string{
		slice("one-a", "one", one), slice("two-a", "two", two),
		slice("both-a", "both", one), slice("both-b", "both", two),
	}
	b := "# The two backends of the demo; in a cluster Kubernetes writes these.\n" + strings.Join(slices, "---\n")
	if err := os.WriteFile(filepath.Join(dir, "endpointslices.yaml"), []byte(b), 0o644); err != nil {
		return fmt.Errorf("write the sample endpoints: %w", err)
	}
	return nil
}

// slice is an EndpointSlice of one ready endpoint.
func slice(name, service string, a netip.AddrPort) string {
	return fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: %s
  namespace: shop
  labels:
    kubernetes.io/service-name: %s
addressType: IPv4
ports:
  - name: http
    port: %d
endpoints:
  - addresses: ["%s"]
    conditions:
      ready: true
`, name, service, a.Port(), a.Addr())
}

// tour tells what can be tried, with program as the word that runs this one.
func tour(program, dir string, a agent.Addresses) string {
	base := "http://" + reachable(a.HTTP[0])
	return fmt.Sprintf(`Weir serves the manifests in %[5]s
on %[2]s; two backends, "one" and "two", answer.

  a prefix, shared by both      curl -H 'Host: shop.example' %[2]s/cart/7
  an exact path, only one       curl -H 'Host: shop.example' %[2]s/cart/health
  a longer prefix, only two     curl -H 'Host: shop.example' %[2]s/cart/admin/7
  a wildcard host               curl -H 'Host: any.tools.example' %[2]s/
  no rule for the path: 404     curl -i -H 'Host: shop.example' %[2]s/cartoon
  a streamed answer             curl -N -H 'Host: any.tools.example' %[2]s/stream
  a streamed request            head -c 100000 /dev/zero | curl -T - -H 'Host: any.tools.example' %[2]s/upload
  what the backend receives     curl -H 'Host: shop.example' -H 'X-Test: 1' %[2]s/cart
  a WebSocket that says hello   curl -si -N --http1.1 --max-time 2 -H 'Host: any.tools.example' \
                                  -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' \
                                  -H 'Sec-WebSocket-Key: d2VpciBzYXlzIGhlbGxvIQ==' %[2]s/ws

Change something while it runs:

  a default backend, no 404     mv %[1]s/catch-all.yaml.off %[1]s/catch-all.yaml
  ask what a request gets       %[4]s explain GET %[2]s/cart/7 -H 'Host: shop.example' --manifests %[1]s
  judge the manifests           %[4]s lint --manifests %[1]s
  look inside                   curl http://%[3]s/debug/table   also /metrics, /readyz, /debug/workers

Ctrl-C drains and ends; a second one ends at once.
`, quoted(dir), base, a.Admin, program, dir)
}

// reachable returns where a client of this machine finds a listener.
func reachable(a netip.AddrPort) string {
	switch a.Addr() {
	case netip.IPv4Unspecified():
		return fmt.Sprintf("127.0.0.1:%d", a.Port())
	case netip.IPv6Unspecified():
		return fmt.Sprintf("[::1]:%d", a.Port())
	}
	return a.String()
}
