// Bench compares proxies under the same load, round by round in turn, and
// writes a table of medians with the CPU time of each request.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// loadCommand is the argument with which this program starts itself to make
// load.
const loadCommand = "load"

type options struct {
	proxies, rows []string
	rounds        int
	round, warm   time.Duration
	rate          int   // requests per second of the row with a fixed rate
	proxy, load   place // load: the origin too
	calls, fields bool
	out           string
	weir          map[string]string
	policy        map[string]string // by proxy that is a weir: its accept policy, if not the default
	workers       int               // of a weir
}

func parse(args []string) (options, error) {
	o := options{weir: map[string]string{}, policy: map[string]string{}}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	proxies := f.String("proxies", "weir,nginx-4k,nginx-64k,haproxy", "proxies to run, in turn")
	rowNames := f.String("rows", "", "rows to run: 13B, 100K, hosts, close, one, rate, churn (default all these), many")
	binary := f.String("weir", "bin/weir", "weir binary")
	a := f.String("weir-a", "", "compare this weir binary with that of -weir-b and with nothing else, unless -proxies is given")
	b := f.String("weir-b", "", "see -weir-a")
	f.IntVar(&o.rounds, "rounds", 5, "rounds of each proxy and row")
	f.DurationVar(&o.round, "round", 2*time.Second, "length of a round")
	f.DurationVar(&o.warm, "warm", 300*time.Millisecond, "load before each round that isn't measured")
	f.IntVar(&o.rate, "rate", 5000, "requests per second of row rate")
	f.StringVar(&o.proxy.cpus, "proxy-cpu", "0", "CPUs of the proxies, as 0 or 0,1")
	f.StringVar(&o.load.cpus, "load-cpu", "1", "CPUs of origin and load")
	f.IntVar(&o.workers, "workers", 1, "workers of each weir")
	policies := f.String("policies", "", "compare these accept policies of -weir, and nothing else")
	f.IntVar(&o.proxy.nice, "nice", 0, "niceness of proxies, origin and load; below 0 (as root) on a machine that does other work too")
	f.BoolVar(&o.calls, "calls", true, "count system calls with strace")
	f.BoolVar(&o.fields, "fields", false, "nginx and haproxy add the X- fields that Weir adds")
	f.StringVar(&o.out, "out", "", "file for the report besides standard output")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() != 0 {
		return o, fmt.Errorf("surplus argument %q", f.Arg(0))
	}
	o.load.nice = o.proxy.nice
	o.proxies = strings.Split(*proxies, ",")
	given := false
	f.Visit(func(x *flag.Flag) { given = given || x.Name == "proxies" })
	switch {
	case (*a == "") != (*b == ""):
		return o, fmt.Errorf("-weir-a and -weir-b: want both or none")
	case *a != "":
		o.weir["weir-a"], o.weir["weir-b"] = *a, *b
		if !given {
			o.proxies = []string{"weir-a", "weir-b"}
		}
	case *policies != "":
		o.proxies = strings.Split(*policies, ",")
		for _, policy := range o.proxies {
			o.weir[policy], o.policy[policy] = *binary, policy
		}
	default:
		o.weir["weir"] = *binary
	}
	for _, r := range rows {
		if *rowNames == "" && !r.asked || slices.Contains(strings.Split(*rowNames, ","), r.name) {
			o.rows = append(o.rows, r.name)
		}
	}
	if n := len(strings.Split(*rowNames, ",")); *rowNames != "" && n != len(o.rows) {
		return o, fmt.Errorf("-rows %q: unknown or repeated row", *rowNames)
	}
	if o.rounds < 1 || o.round <= 0 || o.warm <= 0 || o.rate < 1 || o.workers < 1 {
		return o, fmt.Errorf("-rounds, -round, -warm, -rate and -workers must be positive")
	}
	return o, nil
}

func main() {
	err := run(os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	if len(args) == 1 && args[0] == loadCommand {
		return loadMain()
	}
	if len(args) == 2 && args[0] == backendCommand {
		return backendMain(args[1])
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	w := io.Writer(os.Stdout)
	if o.out != "" {
		file, err := os.Create(o.out)
		if err != nil {
			return err
		}
		defer file.Close()
		w = io.MultiWriter(w, file)
	}
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { // nginx's worker may run as another user
		return err
	}
	return compare(w, o, dir)
}

// compare starts all programs and runs all rows.
func compare(w io.Writer, o options, dir string) error {
	origin, err := startOrigin(dir, o.load)
	if err != nil {
		return err
	}
	defer origin.stop()
	s := &settings{dir: dir, place: o.proxy, services: origin.services(), fields: o.fields, weir: absolute(o.weir), policy: o.policy, workers: o.workers, version: map[string]string{}}
	var proxies []*proxy
	for _, name := range o.proxies {
		p, err := startProxy(s, name)
		if err != nil {
			return err
		}
		defer p.stop()
		proxies = append(proxies, p)
	}
	header(w, o, s.version)
	for _, r := range rows {
		if !slices.Contains(o.rows, r.name) {
			continue
		}
		if r.churn {
			if err := runChurn(w, r, o, dir, s.weir, s.version); err != nil {
				return err
			}
			continue
		}
		if err := runRow(w, r, o, proxies, dir); err != nil {
			return err
		}
	}
	return nil
}

func runRow(w io.Writer, r row, o options, proxies []*proxy, dir string) error {
	results := map[string][]sample{}
	for range o.rounds {
		for _, p := range proxies {
			s, err := measure(p, r, o)
			if err != nil {
				return err
			}
			results[p.name] = append(results[p.name], s)
		}
	}
	counted := map[string]calls{}
	for _, p := range proxies {
		if !o.calls || !r.syscalls {
			continue
		}
		c, err := countCalls(p, r, o, dir)
		if err != nil {
			return err
		}
		counted[p.name] = c
	}
	table(w, r, o.proxies, results, counted)
	return nil
}

// absolute makes the paths of binaries independent of the working directory.
func absolute(binaries map[string]string) map[string]string {
	out := map[string]string{}
	for name, path := range binaries {
		if abs, err := filepath.Abs(path); err == nil {
			path = abs
		}
		out[name] = path
	}
	return out
}
