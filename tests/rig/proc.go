package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime returns the CPU time that process pid has used since its start, all
// threads, those that ended included, to the nanosecond of the scheduler.
func CPUTime(pid int) (time.Duration, error) {
	const schedClock = 2 // CPUCLOCK_SCHED in include/linux/posix-timers.h
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedClock), &ts); err != nil {
		return 0, fmt.Errorf("CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// CPUTicks returns user and system time of pid from /proc/PID/stat, in units of
// 10 ms.
func CPUTicks(pid int) (user, system time.Duration, err error) {
	fields, err := stat(pid)
	if err != nil {
		return 0, 0, err
	}
	return ticks(fields[11]), ticks(fields[12]), nil
}

// stat returns the fields of /proc/PID/stat behind the name; those up to the times
// are there.
func stat(pid int) ([]string, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text := string(b)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return nil, fmt.Errorf("read %s: %d fields", path, len(fields))
	}
	return fields, nil
}

// ticks turns a time of /proc/PID/stat into a duration: USER_HZ is 100 on every
// Linux.
func ticks(text string) time.Duration {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("rig: the kernel says that a time is " + text)
	}
	return time.Duration(n) * 10 * time.Millisecond
}

// EndedCPUTicks returns the CPU time of the processes that pid started and waited
// for, in units of 10 ms.
func EndedCPUTicks(pid int) (time.Duration, error) {
	fields, err := stat(pid)
	if err != nil {
		return 0, err
	}
	return ticks(fields[13]) + ticks(fields[14]), nil
}

// RSS returns the resident memory of pid in bytes.
func RSS(pid int) (int64, error) { return status(pid, "VmRSS:") }

// status returns a field of /proc/PID/status that is given in kB, in bytes.
func status(pid int, field string) (int64, error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		rest, ok := strings.CutPrefix(line, field)
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %q: %w", path, line, err)
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("read %s: no %s", path, field)
}

// Children returns the processes that pid started and that still run.
func Children(pid int) ([]int, error) {
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for _, field := range strings.Fields(string(b)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			pids = append(pids, child)
		}
	}
	return pids, nil
}
