package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// binary is built once in a test process, by the first test that needs it.
var binary = sync.OnceValues(build)

// Binary returns the path of the weir binary: WEIR_BINARY if that is set, else
// one that is built now and shared by the tests of this process.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
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
