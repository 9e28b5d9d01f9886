package agent

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/sockmap"
)

// Grades of a CheckItem.
const (
	gradeOK   = "ok"   // as Weir wants it
	gradeLess = "less" // Weir runs, with less
	gradeNo   = "no"   // it does not run like this
)

// CheckItem is one thing of a node that Weir depends on.
type CheckItem struct {
	Name  string `json:"name"`
	Grade string `json:"grade"` // ok, less or no
	Found string `json:"found"`
	Means string `json:"means"` // for Weir
}

// CheckReport says whether a node is fit.
type CheckReport struct {
	Fit   bool        `json:"fit"` // no item is graded "no"
	Items []CheckItem `json:"items"`
}

// Node is what is checked.
type Node struct {
	System  System                          // where /proc and /sys are
	Steer   func() (migrates bool, e error) // tries whether the kernel takes weir_accept
	OnBPFFS func(dir string) error          // why dir can't hold pins, nil if it can
}

// ThisNode is the one that the process runs on, with the process's rights.
func ThisNode() Node {
	return Node{
		System:  os.DirFS("/"),
		OnBPFFS: sockmap.OnBPFFS,
		Steer: func() (bool, error) {
			s, err := sockmap.New(sockmap.Config{Workers: 1, Policy: sockmap.Hash})
			if err != nil {
				return false, err
			}
			return s.Migrates(), s.Close()
		},
	}
}

// Check looks at everything that Weir depends on. bpf is as Config.BPF: with require
// it does not run without BPF, with off nothing of BPF is looked at.
func (n Node) Check(bpf string) CheckReport {
	r := CheckReport{Fit: true, Items: []CheckItem{n.kernel(), n.ports(), n.files(), n.cpus(), n.backlog()}}
	if bpf != bpfOff {
		for _, item := range []CheckItem{n.steering(), n.jit(), n.memlock(), n.pins()} {
			if bpf == bpfRequire && item.Name == "steering" && item.Grade == gradeLess {
				item.Grade = gradeNo
			}
			r.Items = append(r.Items, item)
		}
	}
	r.Items = append(r.Items, n.migration(bpf))
	for _, item := range r.Items {
		r.Fit = r.Fit && item.Grade != gradeNo
	}
	return r
}

// text returns a file of the system without space around it, "" if it can't be read.
func (n Node) text(path string) string {
	b, err := fs.ReadFile(n.System, path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number returns what a sysctl holds, -1 if it can't be read.
func (n Node) number(path string) int {
	v, err := strconv.Atoi(n.text(path))
	if err != nil {
		return -1
	}
	return v
}

// version returns the kernel's, as 514 for 5.14.
func (n Node) version() (int, string) {
	release := n.text("proc/sys/kernel/osrelease")
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return -1, release
	}
	return major*100 + minor, release
}

func (n Node) kernel() CheckItem {
	v, release := n.version()
	item := CheckItem{Name: "kernel", Grade: gradeOK, Found: "Linux " + release}
	switch {
	case v < 0:
		item.Grade, item.Means = gradeLess, "the version can't be told; Linux 5.14 has everything that is used"
	case v < 405:
		item.Grade, item.Means = gradeNo, "workers need Linux 4.5 to share a listening socket"
	case v < 510:
		item.Grade, item.Means = gradeLess, "the accept policies cpu and least-loaded need Linux 5.10: hash is used instead"
	case v < 514:
		item.Grade, item.Means = gradeLess, "before Linux 5.14 connections that wait for a worker that breaks are lost"
	default:
		item.Means = "has everything that is used"
	}
	return item
}

// Capabilities by their bits, linux/capability.h.
const (
	capNetBindService = 10
	capSysAdmin       = 21
	capBPF            = 39
)

// capable reports whether the process has one of some capabilities.
func (n Node) capable(one ...int) bool {
	for line := range strings.Lines(n.text("proc/self/status")) {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			for _, bit := range one {
				if err == nil && set&(1<<bit) != 0 {
					return true
				}
			}
		}
	}
	return false
}

func (n Node) ports() CheckItem {
	first := n.number("proc/sys/net/ipv4/ip_unprivileged_port_start")
	if first < 0 {
		first = 1024
	}
	item := CheckItem{Name: "ports", Grade: gradeOK, Found: "CAP_NET_BIND_SERVICE", Means: "every port can be bound"}
	switch {
	case n.capable(capNetBindService):
	case first <= 80:
		item.Found = fmt.Sprintf("net.ipv4.ip_unprivileged_port_start = %d", first)
		item.Means = fmt.Sprintf("ports from %d on can be bound, the default 80 among them", first)
	default:
		item.Grade, item.Found = gradeNo, "no CAP_NET_BIND_SERVICE"
		item.Means = fmt.Sprintf("only ports from %d on can be bound: give the capability, or other --http-address", first)
	}
	return item
}

// limit returns a soft limit of the process, -1 if it has none.
func (n Node) limit(name string) (int, bool) {
	for line := range strings.Lines(n.text("proc/self/limits")) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				if v, err := strconv.Atoi(f[0]); err == nil {
					return v, true
				}
				return -1, f[0] == "unlimited"
			}
		}
	}
	return 0, false
}

// filesWanted is what the limit of open files should be: room for 29,000 clients.
const filesWanted = 65536

func (n Node) files() CheckItem {
	item := CheckItem{Name: "RLIMIT_NOFILE", Grade: gradeOK}
	files, known := n.limit("Max open files")
	switch {
	case !known:
		item.Grade, item.Found, item.Means = gradeLess, "unknown", "how many connections can be held is not known"
	case files < 0:
		item.Found, item.Means = "unlimited", "as many connections as memory allows"
	default:
		item.Found = strconv.Itoa(files)
		item.Means = fmt.Sprintf("about %d client connections at a time", (files-files/10)/2)
		if files < filesWanted {
			item.Grade = gradeLess
			item.Means += fmt.Sprintf("; %d or more is better", filesWanted)
		}
	}
	return item
}

func (n Node) cpus() CheckItem {
	item := CheckItem{Name: "CPUs", Grade: gradeOK}
	workers, err := AllowedCPUs(n.System)
	if err != nil {
		item.Grade, item.Found, item.Means = gradeNo, err.Error(), "give --workers"
		return item
	}
	item.Found = fmt.Sprintf("%d may be used, by affinity and cgroup quota", workers)
	if dir := n.cgroup2(); dir != "" {
		item.Found += "; cgroup2 at /" + dir
	}
	item.Means = fmt.Sprintf("--workers auto starts %d", workers)
	return item
}

// cgroup2 returns where the unified hierarchy is mounted, "" if it is not.
func (n Node) cgroup2() string {
	for line := range strings.Lines(n.text("proc/self/mountinfo")) {
		left, right, _ := strings.Cut(line, " - ")
		if f := strings.Fields(left); strings.HasPrefix(right, "cgroup2 ") && len(f) > 4 {
			return strings.TrimPrefix(f[4], "/")
		}
	}
	return ""
}

// backlogWanted is the kernel's default since Linux 5.4.
const backlogWanted = 4096

func (n Node) backlog() CheckItem {
	v := n.number("proc/sys/net/core/somaxconn")
	item := CheckItem{Name: "net.core.somaxconn", Grade: gradeOK, Found: strconv.Itoa(v)}
	item.Means = fmt.Sprintf("%d connections may wait at a socket to be accepted", v)
	if v < backlogWanted {
		item.Grade = gradeLess
		item.Means += fmt.Sprintf("; bursts beyond are delayed: %d or more is better", backlogWanted)
	}
	return item
}
