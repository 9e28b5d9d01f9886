package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/weirproxy/weir/tests/bench/load"
	"github.com/weirproxy/weir/tests/rig"
)

// The row "churn": a service of churnPods endpoints, each a process of its own.
// Every churnEvery a new one comes, the proxy is told to use it instead of the
// oldest, and at the same moment that one gets SIGTERM, on which it ends at once:
// what a rolling update without a preStop hook does. The load has a fixed rate.
const (
	churnPods  = 4
	churnEvery = 500 * time.Millisecond
	churnSteps = 16
	churnRate  = 2000
)

// backendCommand is the argument with which this program starts itself to be an
// endpoint.
const backendCommand = "backend"

// backendMain answers every request with 13 bytes until SIGTERM ends it.
func backendMain(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "wwwwwwwwwwwww")
	}))
}

// pods are the endpoints of the service, the oldest first.
type pods struct {
	where place
	port  uint16
	made  int
	list  []*child
	addrs []netip.AddrPort
}

// add starts one more and waits until it listens.
func (p *pods) add() error {
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 3, byte(1 + p.made%250)}), p.port)
	p.made++
	c, err := startSelf(p.where, backendCommand, addr.String())
	if err != nil {
		return err
	}
	p.list, p.addrs = append(p.list, c), append(p.addrs, addr)
	return c.await(addr)
}

// drop ends the oldest.
func (p *pods) drop() {
	c := p.list[0]
	p.list, p.addrs = p.list[1:], p.addrs[1:]
	c.cmd.Process.Signal(syscall.SIGTERM)
	c.cmd.Wait()
}

func (p *pods) stop() {
	for len(p.list) > 0 {
		p.drop()
	}
}

// churnSample is one round of one proxy.
type churnSample struct {
	load.Result
	cpu  time.Duration // of the proxy and of all processes that it started
	peak int64         // bytes resident, of all of them together
}

// runChurn measures all proxies in turn and writes their medians.
func runChurn(w io.Writer, r row, o options, dir string, weir, versions map[string]string) error {
	results := map[string][]churnSample{}
	for n := range o.rounds {
		for _, name := range o.proxies {
			s := &settings{dir: fmt.Sprintf("%s/churn%d%s", dir, n, name), place: o.proxy, fields: o.fields, weir: weir,
				policy: o.policy, workers: o.workers, version: versions}
			x, err := churn(s, r, o, name)
			if err != nil {
				return err
			}
			results[name] = append(results[name], x)
		}
	}
	fmt.Fprintf(w, "row %s: %s; %d/s; one of %d endpoints replaced every %v, %d times a round\n",
		r.name, r.what, churnRate, churnPods, churnEvery, churnSteps)
	fmt.Fprintf(w, "%-10s %9s %9s %9s %9s %9s %9s %9s %9s\n",
		"proxy", "requests", "failed", "late", "p50 us", "p99 us", "max us", "cpu us/rq", "peak KiB")
	for _, name := range o.proxies {
		s := results[name]
		med := func(f func(churnSample) float64) float64 {
			var v []float64
			for _, x := range s {
				v = append(v, f(x))
			}
			return median(v)
		}
		us := func(f func(churnSample) time.Duration) float64 {
			return med(func(x churnSample) float64 { return float64(f(x).Nanoseconds()) / 1e3 })
		}
		requests, failed, late := 0, 0, 0
		for _, x := range s {
			requests, failed, late = requests+x.Requests, failed+x.Errors, late+x.Late
		}
		fmt.Fprintf(w, "%-10s %9d %9d %9d %9.0f %9.0f %9.0f %9.2f %9.0f\n", name, requests, failed, late,
			us(func(x churnSample) time.Duration { return x.P50 }),
			us(func(x churnSample) time.Duration { return x.P99 }),
			us(func(x churnSample) time.Duration { return x.Max }),
			med(func(x churnSample) float64 { return float64(x.cpu.Nanoseconds()) / 1e3 / float64(max(x.Requests, 1)) }),
			med(func(x churnSample) float64 { return float64(x.peak) / 1024 }))
	}
	fmt.Fprintln(w)
	return nil
}

// churn measures one round.
func churn(s *settings, r row, o options, name string) (sample churnSample, err error) {
	if err := makeDir(s.dir); err != nil {
		return sample, err
	}
	free, err := rig.FreeAddr(netip.IPv4Unspecified())
	if err != nil {
		return sample, err
	}
	p := &pods{where: o.load, port: free.Port()}
	defer p.stop()
	for range churnPods {
		if err := p.add(); err != nil {
			return sample, err
		}
	}
	services := func(addrs []netip.AddrPort) []service { return []service{{hostName(0), slices.Clone(addrs)}} }
	s.services = services(p.addrs)
	x, err := startProxy(s, name)
	if err != nil {
		return sample, err
	}
	defer x.stop()

	var watching sync.WaitGroup
	defer watching.Wait()
	stop := make(chan struct{})
	defer close(stop)
	watching.Go(func() { sample.peak = peakRSS(x.cmd.Process.Pid, stop) })

	plan := r.plan(x, time.Second+churnSteps*churnEvery, churnRate)
	loaded := make(chan error, 1)
	go func() {
		var err error
		sample.Result, err = runLoad(o.load, plan)
		loaded <- err
	}()
	before, err := treeCPU(x.cmd.Process.Pid)
	if err != nil {
		return sample, errors.Join(err, <-loaded)
	}
	next := time.Now().Add(churnEvery)
	for range churnSteps {
		if err := p.add(); err != nil {
			return sample, errors.Join(err, <-loaded)
		}
		time.Sleep(time.Until(next))
		next = next.Add(churnEvery)
		if err := x.change(services(p.addrs[1:])); err != nil {
			return sample, errors.Join(err, <-loaded)
		}
		p.drop()
	}
	if err := <-loaded; err != nil {
		return sample, err
	}
	after, err := treeCPU(x.cmd.Process.Pid)
	if err != nil {
		return sample, err
	}
	sample.cpu = after - before
	if sample.Requests == 0 {
		return sample, fmt.Errorf("%s answered no request of row %s: %s", name, r.name, &x.log)
	}
	return sample, nil
}

// tree returns pid and all processes below it.
func tree(pid int) []int {
	list := []int{pid}
	for i := 0; i < len(list); i++ {
		children, err := rig.Children(list[i])
		if err == nil { // else it has just ended
			list = append(list, children...)
		}
	}
	return list
}

// treeCPU returns the CPU time of pid, of all processes below it, and of those
// that ended.
func treeCPU(pid int) (time.Duration, error) {
	var sum time.Duration
	for i, p := range tree(pid) {
		user, system, err := rig.CPUTicks(p)
		if err != nil && i > 0 {
			continue // it has just ended: its parent tells
		}
		if err != nil {
			return 0, err
		}
		ended, err := rig.EndedCPUTicks(p)
		if err != nil && i == 0 {
			return 0, err
		}
		sum += user + system + ended
	}
	return sum, nil
}

// peakRSS returns the most memory that pid and the processes below it held
// together, until stop.
func peakRSS(pid int, stop <-chan struct{}) int64 {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	most := int64(0)
	for {
		sum := int64(0)
		for _, p := range tree(pid) {
			if n, err := rig.RSS(p); err == nil {
				sum += n
			}
		}
		most = max(most, sum)
		select {
		case <-stop:
			return most
		case <-tick.C:
		}
	}
}

// makeDir makes a directory that nginx's worker may read as another user.
func makeDir(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755) // whatever the umask is
}
