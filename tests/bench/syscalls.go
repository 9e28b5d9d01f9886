package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// calls is how many system calls a proxy made for one request.
type calls struct {
	perRequest float64
	detail     string // "epoll_wait 0.31, ..." for the calls above 0.01
}

// countCalls attaches strace to p for the time of one load. The counts have
// nothing to do with the timings: strace slows the proxy down many times.
func countCalls(p *proxy, r row, o options, dir string) (calls, error) {
	out := filepath.Join(dir, "strace."+p.name+"."+r.name)
	cmd := exec.Command("strace", "-c", "-f", "-o", out, "-p", strconv.Itoa(p.busiest()))
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		return calls{}, fmt.Errorf("start strace: %w", err)
	}
	time.Sleep(300 * time.Millisecond) // attaching; a call missed costs less than 0.1 %
	plan := r.plan(p, 2*time.Second, o.rate)
	result, loadErr := runLoad(o.load, plan)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		return calls{}, fmt.Errorf("stop strace: %w: %s", err, &log)
	}
	cmd.Wait() // ends by the signal that it was sent
	if loadErr != nil {
		return calls{}, loadErr
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return calls{}, fmt.Errorf("read counts of strace (%s): %w", &log, err)
	}
	c, err := parseCalls(string(text), result.Requests)
	if err != nil {
		return c, fmt.Errorf("%w: strace says: %s", err, &log)
	}
	return c, nil
}

// parseCalls reads the table of strace -c: % time, seconds, usecs/call, calls,
// errors (may be empty), syscall.
func parseCalls(table string, requests int) (calls, error) {
	type count struct {
		name string
		n    float64
	}
	var list []count
	var c calls
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 5 || f[len(f)-1] == "total" {
			continue
		}
		n, err := strconv.ParseFloat(f[3], 64)
		if err != nil {
			continue // the head of the table and its rules
		}
		list = append(list, count{f[len(f)-1], n / float64(requests)})
		c.perRequest += n / float64(requests)
	}
	if len(list) == 0 || requests == 0 {
		return c, fmt.Errorf("no system calls counted for %d requests: %s", requests, table)
	}
	slices.SortFunc(list, func(a, b count) int { return int(1e6 * (b.n - a.n)) })
	var parts []string
	for _, x := range list {
		if x.n >= 0.01 {
			parts = append(parts, fmt.Sprintf("%s %.2f", x.name, x.n))
		}
	}
	c.detail = strings.Join(parts, ", ")
	return c, nil
}
