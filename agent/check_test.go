package agent

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// sampleNode is a fit one; each test changes what it is about.
func sampleNode(edit map[string]string) Node {
	files := map[string]string{
		"proc/sys/kernel/osrelease":                    "6.1.0-18-amd64\n",
		"proc/sys/net/ipv4/ip_unprivileged_port_start": "1024\n",
		"proc/sys/net/ipv4/tcp_migrate_req":            "0\n",
		"proc/sys/net/core/somaxconn":                  "4096\n",
		"proc/sys/net/core/bpf_jit_enable":             "1\n",
		"proc/self/status":                             "Name:\tweir\nCapEff:\t0000008000001400\nCpus_allowed_list:\t0-3\n",
		"proc/self/limits":                             "Limit                     Soft Limit           Hard Limit           Units\nMax open files            1048576              1048576              files\nMax locked memory         8388608              8388608              bytes\n",
		"proc/self/mountinfo":                          "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
	}
	maps.Copy(files, edit)
	system := fstest.MapFS{}
	for name, text := range files {
		system[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return Node{
		System:  system,
		Steer:   func() (bool, error) { return true, nil },
		OnBPFFS: func(string) error { return nil },
	}
}

func TestEachThingOfANodeIsGraded(t *testing.T) {
	limits := func(files, memory string) map[string]string {
		return map[string]string{"proc/self/limits": fmt.Sprintf("Max open files            %s 1 files\nMax locked memory         %s 1 bytes\n", files, memory)}
	}
	status := func(effective string) map[string]string {
		return map[string]string{"proc/self/status": "CapEff:\t" + effective + "\nCpus_allowed_list:\t0\n"}
	}
	one := func(name, text string) map[string]string { return map[string]string{name: text} }
	const version = "proc/sys/kernel/osrelease"
	for _, tt := range []struct {
		name   string
		files  map[string]string
		edit   func(*Node)
		bpf    string
		item   string
		grade  string
		says   string
		notFit bool
	}{
		{"kernel", nil, nil, "auto", "kernel", "ok", "everything", false},
		{"before migration", one(version, "5.10.0"), nil, "auto", "kernel", "less", "5.14", false},
		{"before steering", one(version, "5.4.0-150-generic"), nil, "auto", "kernel", "less", "5.10", false},
		{"before EPOLLEXCLUSIVE", one(version, "4.4.0"), nil, "auto", "kernel", "no", "4.5", true},
		{"unknown kernel", one(version, "none"), nil, "auto", "kernel", "less", "5.14", false},
		{"may bind", nil, nil, "auto", "ports", "ok", "every port", false},
		{"may not bind", status("0000008000000000"), nil, "auto", "ports", "no", "from 1024 on", true},
		{"all may bind", map[string]string{"proc/self/status": "CapEff:\t0\nCpus_allowed_list:\t0\n", "proc/sys/net/ipv4/ip_unprivileged_port_start": "80"}, nil, "auto", "ports", "ok", "from 80 on", false},
		{"files", nil, nil, "auto", "RLIMIT_NOFILE", "ok", "471859 client connections", false},
		{"few files", limits("1024", "1"), nil, "auto", "RLIMIT_NOFILE", "less", "461 client connections", false},
		{"files without limit", limits("unlimited", "1"), nil, "auto", "RLIMIT_NOFILE", "ok", "as memory allows", false},
		{"no limits", one("proc/self/limits", ""), nil, "auto", "RLIMIT_NOFILE", "less", "not known", false},
		{"CPUs", nil, nil, "auto", "CPUs", "ok", "starts 4", false},
		{"no CPUs", one("proc/self/status", "CapEff:\t0000008000001400\n"), nil, "auto", "CPUs", "no", "give --workers", true},
		{"short backlog", one("proc/sys/net/core/somaxconn", "128"), nil, "auto", "net.core.somaxconn", "less", "128 connections may wait", false},
		{"steering", nil, nil, "auto", "steering", "ok", "work", false},
		{"no rights", status("0000000000001400"), func(n *Node) { n.Steer = func() (bool, error) { return false, os.ErrPermission } }, "auto", "steering", "less", "policy is hash", false},
		{"no rights but required", status("0000000000001400"), func(n *Node) { n.Steer = func() (bool, error) { return false, os.ErrPermission } }, "require", "steering", "no", "policy is hash", true},
		{"a kernel that refuses", nil, func(n *Node) { n.Steer = func() (bool, error) { return false, errors.New("verifier") } }, "auto", "steering", "less", "policy is hash", false},
		{"interpreter", one("proc/sys/net/core/bpf_jit_enable", "0"), nil, "auto", "net.core.bpf_jit_enable", "less", "interpreted", false},
		{"memory of an old kernel", map[string]string{version: "5.10.0", "proc/self/limits": "Max locked memory         65536 65536 bytes\n"}, nil, "auto", "RLIMIT_MEMLOCK", "less", "CAP_SYS_RESOURCE", false},
		{"memory of a new kernel", limits("1048576", "65536"), nil, "auto", "RLIMIT_MEMLOCK", "ok", "no effect", false},
		{"no bpffs", nil, func(n *Node) { n.OnBPFFS = func(string) error { return errors.New("not mounted") } }, "require", "bpffs", "less", "can't be pinned", false},
		{"migration by the program", nil, nil, "auto", "net.ipv4.tcp_migrate_req", "ok", "weir_accept does the same", false},
		{"no migration", nil, nil, "off", "net.ipv4.tcp_migrate_req", "less", "are lost", false},
		{"migration by the kernel", one("proc/sys/net/ipv4/tcp_migrate_req", "1"), nil, "off", "net.ipv4.tcp_migrate_req", "ok", "go to another", false},
	} {
		n := sampleNode(tt.files)
		if tt.edit != nil {
			tt.edit(&n)
		}
		r := n.Check(tt.bpf)
		found := false
		for _, i := range r.Items {
			if i.Name != tt.item {
				continue
			}
			found = true
			if i.Grade != tt.grade || !strings.Contains(i.Means, tt.says) {
				t.Errorf("%s: %+v, want %s with %q", tt.name, i, tt.grade, tt.says)
			}
		}
		if !found || r.Fit == tt.notFit {
			t.Errorf("%s: %s found %v, fit %v; want fit %v", tt.name, tt.item, found, r.Fit, !tt.notFit)
		}
	}
}

func TestWithoutBPFNothingOfItIsChecked(t *testing.T) {
	n := sampleNode(nil)
	n.Steer = func() (bool, error) { t.Error("a program was loaded"); return false, nil }
	for _, i := range n.Check("off").Items {
		if i.Name == "steering" || i.Name == "bpffs" {
			t.Errorf("%+v is checked", i)
		}
	}
}
