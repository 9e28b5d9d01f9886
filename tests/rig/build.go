package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Build returns the path of the weir binary: WEIR_BINARY if that is set, else
// one that the first call in a process builds.
var Build = sync.OnceValues(build)

// Binary is Build for a test.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := Build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func build() (string, error) {
	if path := os.Getenv("WEIR_BINARY"); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("WEIR_BINARY: %w", err)
		}
		return filepath.Abs(path)
	}
	// Built where git ignores it, so that it outlives no checkout and needs no
	// clean-up that a test process can't do.
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "bin", "weir.test-"+fmt.Sprint(os.Getuid()))
	cmd := exec.Command("go", "build", "-o", path, "./cmd/weir")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build weir: %w\n%s", err, out)
	}
	return path, nil
}

// moduleRoot returns the directory of the nearest go.mod above this process.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		dir = filepath.Dir(dir)
	}
	return "", fmt.Errorf("no go.mod above the working directory")
}
