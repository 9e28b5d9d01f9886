package agent

import (
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// System is where the kernel tells about this process: the root directory, of
// which proc/self and the cgroup mounts are read.
type System = fs.FS

// AllowedCPUs returns how many CPUs this process may keep busy: those of its
// affinity mask, or fewer if the cgroup it is in, or one above that, has a quota
// (cgroup v1 and v2). A part of a CPU does not count, but the result is at least
// 1.
func AllowedCPUs(system System) (int, error) {
	cpus, err := affinity(system)
	if err != nil {
		return 0, err
	}
	n := len(cpus)
	if quota := cgroupQuota(system); quota < float64(n) {
		n = int(quota)
	}
	return max(n, 1), nil
}

// affinity returns the numbers of the CPUs this process may run on.
func affinity(system System) ([]int, error) {
	b, err := fs.ReadFile(system, "proc/self/status")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return parseCPUs(strings.TrimSpace(list))
		}
	}
	return nil, fmt.Errorf("/proc/self/status has no Cpus_allowed_list")
}

// parseCPUs reads a list like "0-3,8".
func parseCPUs(list string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(list, ",") {
		low, high, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(low)
		last := first
		if err == nil && ranged {
			last, err = strconv.Atoi(high)
		}
		if err != nil || first < 0 || last < first || last-first > 1<<16 {
			return nil, fmt.Errorf("list of CPUs %q: want numbers and ranges", list)
		}
		for cpu := first; cpu <= last; cpu++ {
			out = append(out, cpu)
		}
	}
	return out, nil
}

// cgroupQuota returns the smallest quota on the way from this process's cgroup to
// the root, in CPUs, +Inf if there is none. What can't be read sets no quota.
func cgroupQuota(system System) float64 {
	groups, err := fs.ReadFile(system, "proc/self/cgroup")
	if err != nil {
		return math.Inf(1)
	}
	mounts, err := fs.ReadFile(system, "proc/self/mountinfo")
	if err != nil {
		return math.Inf(1)
	}
	quota := math.Inf(1)
	for line := range strings.Lines(string(groups)) {
		// hierarchy-ID:controllers:path, proc_pid_cgroup(5)
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		v2 := f[0] == "0" && f[1] == ""
		if !v2 && !listed(f[1], "cpu") {
			continue
		}
		top, dir := locate(string(mounts), f[2], v2)
		if top == "" {
			continue
		}
		for ; ; dir = path.Dir(dir) {
			quota = min(quota, groupQuota(system, dir, v2))
			if dir == top || !strings.HasPrefix(dir, top) {
				break
			}
		}
	}
	return quota
}

// listed reports whether word is one of a comma-separated list.
func listed(list, word string) bool {
	for part := range strings.SplitSeq(list, ",") {
		if part == word {
			return true
		}
	}
	return false
}

// locate returns where the hierarchy of a cgroup is mounted and where in it the
// group is; "" if it is not mounted. Both lack the leading '/'.
func locate(mounts, group string, v2 bool) (top, dir string) {
	for line := range strings.Lines(mounts) {
		// ID parent major:minor root mountpoint options [optional...] - type source options, proc_pid_mountinfo(5)
		left, right, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(left), strings.Fields(right)
		if !ok || len(f) < 6 || len(g) < 3 {
			continue
		}
		if v2 && g[0] != "cgroup2" || !v2 && (g[0] != "cgroup" || !listed(g[2], "cpu")) {
			continue
		}
		top = strings.TrimPrefix(f[4], "/")
		rest, under := strings.CutPrefix(group, strings.TrimSuffix(f[3], "/"))
		if !under || strings.HasPrefix(rest, "/..") {
			rest = "" // outside of what is mounted: the mount's own group is the nearest
		}
		return top, path.Join(top, rest)
	}
	return "", ""
}

// groupQuota returns the quota of one cgroup in CPUs, +Inf if it has none.
func groupQuota(system System, dir string, v2 bool) float64 {
	read := func(name string) []string {
		b, err := fs.ReadFile(system, path.Join(dir, name))
		if err != nil {
			return nil
		}
		return strings.Fields(string(b))
	}
	var f []string
	if v2 {
		f = read("cpu.max") // "max 100000" or "150000 100000"
	} else {
		f = append(read("cpu.cfs_quota_us"), read("cpu.cfs_period_us")...) // -1: none
	}
	if len(f) != 2 {
		return math.Inf(1)
	}
	quota, err1 := strconv.ParseFloat(f[0], 64)
	period, err2 := strconv.ParseFloat(f[1], 64)
	if err1 != nil || err2 != nil || quota <= 0 || period <= 0 {
		return math.Inf(1)
	}
	return quota / period
}
