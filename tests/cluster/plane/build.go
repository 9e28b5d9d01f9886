package plane

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// version is that of module tests/cluster/binaries.
const version = "v1.36.3"

// binaries are the paths of the programs.
type binaries struct{ etcd, apiServer, controllerManager string }

// Build returns once the programs are there. If they are not in the cache of
// earlier runs (UserCacheDir/weir) it builds them, which takes about ten minutes on
// two cores, and writes to progress how it goes.
func Build(progress io.Writer) error {
	_, err := find(progress)
	return err
}

func find(progress io.Writer) (binaries, error) {
	etcd, err := exec.LookPath("etcd")
	if err != nil {
		return binaries{}, fmt.Errorf("etcd is missing: install Debian's package etcd-server, as make deps does for root: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return binaries{}, err
	}
	dir := filepath.Join(cache, "weir", "kubernetes-"+version+"-"+runtime.Version()+"-"+runtime.GOARCH)
	b := binaries{etcd, filepath.Join(dir, "kube-apiserver"), filepath.Join(dir, "kube-controller-manager")}
	if exists(b.apiServer) && exists(b.controllerManager) {
		return b, nil
	}
	return b, build(dir, progress)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// build builds the programs into dir, both or none.
func build(dir string, progress io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	module, err := moduleDir()
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "building kube-apiserver and kube-controller-manager %s: about ten minutes on two cores, once\n", version)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", temp+string(filepath.Separator),
		"k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kube-controller-manager")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
	start := time.Now()
	stop := tellTime(progress, start)
	out, err := cmd.CombinedOutput()
	stop()
	if err != nil {
		return fmt.Errorf("build kube-apiserver and kube-controller-manager: %w\n%s", err, out)
	}
	fmt.Fprintf(progress, "built in %v, kept in %s\n", time.Since(start).Round(time.Second), dir)
	if err := os.Rename(temp, dir); err != nil && !exists(filepath.Join(dir, "kube-controller-manager")) {
		return err // else somebody else was faster
	}
	return nil
}

// tellTime writes once a minute how long it has been, until stop is called.
func tellTime(w io.Writer, start time.Time) (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Minute)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				fmt.Fprintf(w, "still building after %v\n", time.Since(start).Round(time.Second))
			}
		}
	}()
	return func() { close(end); <-done }
}

// moduleDir returns the directory of the module that requires the programs.
func moduleDir() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/weirproxy/weir").Output()
	if err != nil {
		return "", fmt.Errorf("find the module's directory: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "tests", "cluster", "binaries"), nil
}
