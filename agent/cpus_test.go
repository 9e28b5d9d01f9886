package agent

import (
	"os"
	"testing"
	"testing/fstest"
)

func TestAllowedCPUs(t *testing.T) {
	const mount2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	const mount1 = "31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"32 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
	for _, tt := range []struct {
		name  string
		files map[string]string // beside proc/self/status
		cpus  string
		want  int
	}{
		{"affinity alone", nil, "0-3,8", 5},
		{"v2 quota", map[string]string{
			"proc/self/cgroup": "0::/pod/weir\n", "proc/self/mountinfo": mount2,
			"sys/fs/cgroup/pod/weir/cpu.max": "250000 100000\n",
		}, "0-7", 2},
		{"v2 quota of a parent", map[string]string{
			"proc/self/cgroup": "0::/pod/weir\n", "proc/self/mountinfo": mount2,
			"sys/fs/cgroup/pod/weir/cpu.max": "max 100000\n", "sys/fs/cgroup/pod/cpu.max": "300000 100000\n",
		}, "0-7", 3},
		{"v2 in a cgroup namespace", map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mount2,
			"sys/fs/cgroup/cpu.max": "400000 100000\n",
		}, "0-7", 4},
		{"less than one CPU", map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mount2, "sys/fs/cgroup/cpu.max": "50000 100000\n",
		}, "0-7", 1},
		{"no quota", map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mount2, "sys/fs/cgroup/cpu.max": "max 100000\n",
		}, "2,4", 2},
		{"quota above the mask", map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mount2, "sys/fs/cgroup/cpu.max": "900000 100000\n",
		}, "1", 1},
		{"v1", map[string]string{
			"proc/self/cgroup": "5:memory:/x\n4:cpu,cpuacct:/docker/abc\n", "proc/self/mountinfo": mount1,
			"sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us":  "600000\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us": "100000\n",
		}, "0-15", 6},
		{"v1 without quota", map[string]string{
			"proc/self/cgroup": "4:cpu,cpuacct:/docker/abc\n", "proc/self/mountinfo": mount1,
			"sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us":  "-1\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us": "100000\n",
		}, "0-15", 16},
		{"v1 mounted at the container's own group", map[string]string{
			"proc/self/cgroup":                                 "4:cpu:/docker/abc\n",
			"proc/self/mountinfo":                              "32 24 0:28 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":               "200000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":              "100000\n",
			"sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us":    "100000\n",
			"sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us":   "100000\n",
			"sys/fs/cgroup/memory/docker/abc/cpu.cfs_quota_us": "100000\n",
		}, "0-15", 2},
	} {
		system := fstest.MapFS{"proc/self/status": {Data: []byte("Name:\tweir\nCpus_allowed:\tff\nCpus_allowed_list:\t" + tt.cpus + "\n")}}
		for name, text := range tt.files {
			system[name] = &fstest.MapFile{Data: []byte(text)}
		}
		got, err := AllowedCPUs(system)
		if err != nil || got != tt.want {
			t.Errorf("%s: AllowedCPUs = %d, %v, want %d", tt.name, got, err, tt.want)
		}
	}
}

func TestAllowedCPUsOfThisMachine(t *testing.T) {
	n, err := AllowedCPUs(os.DirFS("/"))
	if err != nil || n < 1 {
		t.Errorf("AllowedCPUs = %d, %v, want at least 1", n, err)
	}
}

func TestParseCPUsRefusesNonsense(t *testing.T) {
	for _, list := range []string{"", "a", "3-1", "-1", "1,,2", "0-999999999"} {
		if got, err := parseCPUs(list); err == nil {
			t.Errorf("parseCPUs(%q) = %v, want an error", list, got)
		}
	}
}
