package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// firstLine returns the first line that a command prints, or its error.
func firstLine(name string, args ...string) string {
	out, err := exec.Command(name, args...).CombinedOutput()
	line, _, _ := strings.Cut(string(out), "\n")
	if err != nil {
		return fmt.Sprintf("%s (%v)", line, err)
	}
	return line
}

// header writes what one needs to judge or to repeat the run.
func header(w io.Writer, o options, versions map[string]string) {
	var u unix.Utsname
	kernel := "unknown"
	if unix.Uname(&u) == nil {
		kernel = unix.ByteSliceToString(u.Release[:])
	}
	fmt.Fprintf(w, "date      %s\n", time.Now().UTC().Format(time.RFC3339))
	fmt.Fprintf(w, "commit    %s\n", firstLine("git", "describe", "--always", "--dirty"))
	fmt.Fprintf(w, "command   bench %s\n", strings.Join(os.Args[1:], " "))
	fmt.Fprintf(w, "cpu       %d x %s\n", runtime.NumCPU(), cpuModel())
	fmt.Fprintf(w, "kernel    %s\n", kernel)
	fmt.Fprintf(w, "go        %s\n", runtime.Version())
	fmt.Fprintf(w, "settings  nginx and haproxy with one worker, weir with %d, on CPUs %s; origin (nginx, one worker) and load on CPUs %s; niceness %d\n",
		o.workers, o.proxy.cpus, o.load.cpus, o.load.nice)
	fmt.Fprintf(w, "          %d rounds of %v after %v of warm-up, proxies in turn; fixed rate %d/s; X- fields added by all: %v\n",
		o.rounds, o.round, o.warm, o.rate, o.fields)
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		fmt.Fprintf(w, "version   %-10s %s\n", name, versions[name])
	}
	fmt.Fprintln(w)
}

func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(b)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown model"
}

// median returns the middle of v, or the mean of the two middle ones.
func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	n := len(s)
	if n == 0 {
		return 0
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}

func pick(samples []sample, value func(sample) float64) []float64 {
	out := make([]float64, len(samples))
	for i, s := range samples {
		out[i] = value(s)
	}
	return out
}

// baseline returns the proxy that the others are compared with: the better
// nginx, or the first one if there is no nginx.
func baseline(order []string, results map[string][]sample) string {
	best := ""
	for _, name := range order {
		if !strings.HasPrefix(name, "nginx") {
			continue
		}
		if best == "" || median(pick(results[name], sample.perRequest)) < median(pick(results[best], sample.perRequest)) {
			best = name
		}
	}
	if best == "" {
		return order[0]
	}
	return best
}

// table writes the medians of one row and, for CPU per request, the median and
// the range of the per-round ratios to the baseline.
func table(w io.Writer, r row, order []string, results map[string][]sample, counted map[string]calls) {
	base := baseline(order, results)
	fmt.Fprintf(w, "row %s: %s; ratios to %s\n", r.name, r.what, base)
	fmt.Fprintf(w, "%-10s %9s %6s %13s %6s %9s %9s %9s %9s %8s %7s %6s\n", "proxy", "cpu us/rq", "ratio",
		"(range)", "user", "req/s", "p50 us", "p99 us", "max us", "RSS KiB", "errors", "calls")
	for _, name := range order {
		s := results[name]
		var ratios []float64
		for i := range s {
			ratios = append(ratios, s[i].perRequest()/results[base][i].perRequest())
		}
		errors := 0
		for _, x := range s {
			errors += x.Errors + x.Late
		}
		callText := "-"
		if c, ok := counted[name]; ok {
			callText = fmt.Sprintf("%.2f", c.perRequest)
		}
		fmt.Fprintf(w, "%-10s %9.2f %6.3f %13s %5.0f%% %9.0f %9.0f %9.0f %9.0f %8.0f %7d %6s\n", name,
			median(pick(s, sample.perRequest)), median(ratios),
			fmt.Sprintf("(%.3f-%.3f)", slices.Min(ratios), slices.Max(ratios)),
			100*median(pick(s, userShare)), median(pick(s, sample.rate)),
			median(pick(s, micros(func(x sample) time.Duration { return x.P50 }))),
			median(pick(s, micros(func(x sample) time.Duration { return x.P99 }))),
			median(pick(s, micros(func(x sample) time.Duration { return x.Max }))),
			median(pick(s, func(x sample) float64 { return float64(x.rss) / 1024 })), errors, callText)
	}
	for _, name := range order {
		if s := pick(results[name], func(x sample) float64 { return x.uneven }); slices.Max(s) > 0 {
			fmt.Fprintf(w, "  requests of the busiest worker to the mean, %s: %.3f (%.3f-%.3f)\n", name, median(s), slices.Min(s), slices.Max(s))
		}
	}
	for _, name := range order {
		if c, ok := counted[name]; ok {
			fmt.Fprintf(w, "  calls per request, %s: %s\n", name, c.detail)
		}
	}
	fmt.Fprintln(w)
}

func userShare(s sample) float64 {
	return float64(s.user) / float64(max(s.user+s.system, 1))
}

func micros(f func(sample) time.Duration) func(sample) float64 {
	return func(s sample) float64 { return float64(f(s).Nanoseconds()) / 1e3 }
}
