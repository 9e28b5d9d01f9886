package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// runDeps runs deps.sh as if by root of a machine that lacks curl, wrk and others,
// with aptGet as the script of its apt-get.
func runDeps(t *testing.T, policy, aptGet string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	script := func(name, body string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script("id", "echo 0")
	script("apt-get", aptGet)
	for _, name := range []string{"rm", "chmod"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(sh, "deps.sh")
	cmd.Env = []string{"PATH=" + bin, "POLICY_RC_D=" + policy}
	out, err := cmd.CombinedOutput()
	if err == nil && len(out) == 0 {
		t.Skip("nothing is missing: this machine has every program in /usr/sbin")
	}
	return string(out), err
}

const asksPolicy = `
if "$POLICY_RC_D" nginx start; then echo "policy: 0" >&2; else echo "policy: $?" >&2; fi`

func TestDepsStartsNoServices(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy-rc.d")
	out, err := runDeps(t, policy, asksPolicy)
	if err != nil || !strings.Contains(out, "policy: 101") || !strings.Contains(out, "not started") {
		t.Errorf("deps.sh: %v, want apt-get to be told 101; output:\n%s", err, out)
	}
	if _, err := os.Stat(policy); !os.IsNotExist(err) {
		t.Errorf("the policy is still there: %v", err)
	}
}

func TestDepsRemovesItsPolicyIfAptFails(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy-rc.d")
	if out, err := runDeps(t, policy, "exit 100"); err == nil {
		t.Errorf("deps.sh succeeded without its packages; output:\n%s", out)
	}
	if _, err := os.Stat(policy); !os.IsNotExist(err) {
		t.Errorf("the policy is still there: %v", err)
	}
}

func TestDepsKeepsAPolicyOfTheMachine(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "policy-rc.d")
	text := "#!/bin/sh\nexit 0\n"
	if err := os.WriteFile(policy, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := runDeps(t, policy, asksPolicy)
	if err != nil || !strings.Contains(out, "policy: 0") || strings.Contains(out, "not started") {
		t.Errorf("deps.sh: %v, want apt-get to be told 0; output:\n%s", err, out)
	}
	if b, err := os.ReadFile(policy); err != nil || string(b) != text {
		t.Errorf("the machine's policy is now %q, %v", b, err)
	}
}
