package main

import (
	"fmt"
	"time"

	"github.com/weirproxy/weir/tests/bench/load"
	"github.com/weirproxy/weir/tests/rig"
)

// sample is one round of one proxy under one load.
type sample struct {
	load.Result
	cpu          time.Duration // of the proxy
	user, system time.Duration // the same, in ticks of 10 ms
	rss          int64         // bytes, after the round
	uneven       float64       // requests of a weir's busiest worker to the mean; 0 for one worker
}

// perRequest returns the proxy's CPU time for one request in µs.
func (s sample) perRequest() float64 {
	return float64(s.cpu.Nanoseconds()) / 1e3 / float64(max(s.Requests, 1))
}

// rate returns requests per second.
func (s sample) rate() float64 { return float64(s.Requests) / s.Elapsed.Seconds() }

// measure runs one round: a short warm-up, then the load between two readings
// of the proxy's CPU clock.
func measure(p *proxy, r row, o options) (sample, error) {
	warm := r.plan(p, o.warm, o.rate)
	if _, err := runLoad(o.load, warm); err != nil {
		return sample{}, err
	}
	before, err := p.cpu()
	if err != nil {
		return sample{}, err
	}
	userBefore, systemBefore, err := p.ticks()
	if err != nil {
		return sample{}, err
	}
	requestsBefore, err := p.workerRequests()
	if err != nil {
		return sample{}, err
	}
	result, err := runLoad(o.load, r.plan(p, o.round, o.rate))
	if err != nil {
		return sample{}, err
	}
	after, err := p.cpu()
	if err != nil {
		return sample{}, err
	}
	user, system, err := p.ticks()
	if err != nil {
		return sample{}, err
	}
	rss, err := p.rss()
	if err != nil {
		return sample{}, err
	}
	requests, err := p.workerRequests()
	if err != nil {
		return sample{}, err
	}
	if result.Requests == 0 {
		return sample{}, fmt.Errorf("%s answered no request of row %s (%d errors): %s", p.name, r.name, result.Errors, &p.log)
	}
	if after == before {
		return sample{}, fmt.Errorf("%s answered %d requests without CPU time: a process of it is not counted", p.name, result.Requests)
	}
	return sample{Result: result, cpu: after - before, user: user - userBefore, system: system - systemBefore, rss: rss,
		uneven: uneven(requestsBefore, requests)}, nil
}

func (p *proxy) ticks() (user, system time.Duration, err error) {
	for _, pid := range p.pids {
		u, s, err := rig.CPUTicks(pid)
		if err != nil {
			return 0, 0, err
		}
		user, system = user+u, system+s
	}
	return user, system, nil
}
