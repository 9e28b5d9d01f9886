package load

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// loop is one run. Only the goroutine that made it uses it.
type loop struct {
	plan      Plan
	requests  [][]byte
	next      int // index of the next request to send
	epoll     int
	timer     int // timerfd that ticks Rate times a second, or -1
	conns     []*conn
	free      []*conn     // connected, nothing running; only with Rate
	due       []time.Time // moments of requests that wait for a free connection
	sched     time.Time   // moment of the next tick
	buf       []byte
	latencies []int64
	result    Result
}

// Run carries out p. The goroutine must be locked to its thread if the caller
// wants it on a certain CPU.
func Run(p Plan) (Result, error) {
	if err := p.check(); err != nil {
		return Result{}, err
	}
	l := &loop{plan: p, requests: p.requests(), timer: -1, buf: make([]byte, 256<<10)}
	defer l.release()
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return Result{}, fmt.Errorf("make epoll set: %w", err)
	}
	l.epoll = epoll
	for range p.Connections {
		c := &conn{fd: -1}
		l.conns = append(l.conns, c)
		if err := l.open(c); err != nil {
			return Result{}, err
		}
	}
	if err := l.startTimer(); err != nil {
		return Result{}, err
	}
	start := time.Now()
	l.sched = start
	if err := l.turns(start.Add(p.Duration)); err != nil {
		return Result{}, err
	}
	l.result.Elapsed = time.Since(start)
	l.result.quantiles(l.latencies)
	return l.result, nil
}

func (l *loop) release() {
	for _, c := range l.conns {
		if c.fd >= 0 {
			unix.Close(c.fd)
		}
	}
	if l.timer >= 0 {
		unix.Close(l.timer)
	}
	if l.epoll > 0 {
		unix.Close(l.epoll)
	}
}

func (l *loop) startTimer() error {
	if l.plan.Rate == 0 {
		return nil
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("make timer: %w", err)
	}
	l.timer = fd
	every := unix.NsecToTimespec(int64(time.Second) / int64(l.plan.Rate))
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: every, Value: every}, nil); err != nil {
		return fmt.Errorf("start timer: %w", err)
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: -1}
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("register timer: %w", err)
	}
	return nil
}

func (l *loop) turns(end time.Time) error {
	events := make([]unix.EpollEvent, 256)
	for time.Now().Before(end) {
		n, err := unix.EpollWait(l.epoll, events, 100)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for events: %w", err)
		}
		for _, e := range events[:max(n, 0)] {
			if e.Fd < 0 {
				l.tick()
				continue
			}
			if err := l.ready(l.conns[e.Fd], e.Events); err != nil {
				return err
			}
		}
	}
	return nil
}

// tick sends what has become due.
func (l *loop) tick() {
	var count [8]byte
	if _, err := unix.Read(l.timer, count[:]); err != nil {
		return // spurious: the next tick counts it
	}
	interval := time.Second / time.Duration(l.plan.Rate)
	for now := time.Now(); l.sched.Before(now); l.sched = l.sched.Add(interval) {
		l.due = append(l.due, l.sched)
	}
	l.dispatch()
}

// dispatch gives due requests to free connections.
func (l *loop) dispatch() {
	for len(l.due) != 0 && time.Since(l.due[0]) > time.Second {
		l.due = l.due[1:]
		l.result.Late++
	}
	for len(l.due) != 0 && len(l.free) != 0 {
		c := l.free[len(l.free)-1]
		l.free = l.free[:len(l.free)-1]
		at := l.due[0]
		l.due = l.due[1:]
		l.send(c, at)
	}
}
