package agent

import (
	"errors"
	"os"
	"strconv"
)

func (n Node) steering() CheckItem {
	item := CheckItem{Name: "steering", Grade: gradeOK, Found: "weir_accept loads", Means: "the accept policies cpu and least-loaded work"}
	_, err := n.Steer()
	switch {
	case err == nil:
	case errors.Is(err, os.ErrPermission) && !n.capable(capBPF, capSysAdmin):
		item.Grade, item.Found = gradeLess, "no CAP_BPF"
		item.Means = "BPF programs can't be loaded: instead of cpu and least-loaded the policy is hash"
	default:
		item.Grade, item.Found = gradeLess, err.Error()
		item.Means = "instead of cpu and least-loaded the policy is hash"
	}
	return item
}

func (n Node) jit() CheckItem {
	v := n.number("proc/sys/net/core/bpf_jit_enable")
	item := CheckItem{Name: "net.core.bpf_jit_enable", Grade: gradeOK, Found: strconv.Itoa(v), Means: "programs run compiled"}
	switch {
	case v < 0:
		item.Found, item.Means = "not readable", "only root sees it, and not in every network namespace; it is on unless switched off"
	case v == 0:
		item.Grade, item.Means = gradeLess, "programs are interpreted, several times slower: set it to 1"
	}
	return item
}

// memlockWanted is what the maps take, bytes, with room for the programs.
const memlockWanted = 8 << 20

func (n Node) memlock() CheckItem {
	item := CheckItem{Name: "RLIMIT_MEMLOCK", Grade: gradeOK, Found: "unlimited", Means: "has no effect on BPF from Linux 5.11 on"}
	limit, known := n.limit("Max locked memory")
	switch {
	case !known:
		item.Found = "unknown"
	case limit >= 0:
		item.Found = strconv.Itoa(limit)
	}
	if v, _ := n.version(); v >= 511 {
		return item
	}
	item.Means = "enough for the BPF maps"
	if known && limit >= 0 && limit < memlockWanted {
		item.Grade = gradeLess
		item.Means = "before Linux 5.11 BPF maps count against it: Weir lifts it if it has CAP_SYS_RESOURCE"
	}
	return item
}

func (n Node) pins() CheckItem {
	item := CheckItem{Name: "bpffs", Grade: gradeOK, Found: "/sys/fs/bpf", Means: "maps are pinned there, for weir maps and bpftool"}
	if err := n.OnBPFFS(Pins); err != nil {
		item.Grade, item.Found = gradeLess, err.Error()
		item.Means = "maps can't be pinned: weir maps does not find them; everything else works"
	}
	return item
}

// migration is about connections that wait at the socket of a worker that breaks.
func (n Node) migration(bpf string) CheckItem {
	v := n.number("proc/sys/net/ipv4/tcp_migrate_req")
	item := CheckItem{Name: "net.ipv4.tcp_migrate_req", Grade: gradeOK, Found: strconv.Itoa(v)}
	steered := false
	if bpf != bpfOff {
		migrates, err := n.Steer()
		steered = migrates && err == nil
	}
	switch {
	case v > 0:
		item.Means = "connections that wait for a worker that breaks go to another"
	case steered:
		item.Means = "weir_accept does the same for its policies: connections that wait for a worker that breaks go to another"
	default:
		item.Grade = gradeLess
		item.Means = "with the policy hash, connections that wait for a worker that breaks are lost; 1 moves them (Linux 5.14)"
		if v < 0 {
			item.Found = "the kernel lacks it"
		}
	}
	return item
}
