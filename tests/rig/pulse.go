package rig

import (
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// Pulse is a constant rate of requests. Each waits for a free connection of its
// own, so that one slow answer delays no other. Nothing is ever sent twice.
type Pulse struct {
	Addr    netip.AddrPort
	Host    string
	Target  string
	Rate    int              // requests per second
	Methods []string         // in turn; default GET. POST carries its id as a body
	Within  time.Duration    // for an answer, default Deadline
	Targets func(int) string // target of request n instead of Target

	stop  chan struct{}
	done  sync.WaitGroup
	mu    sync.Mutex
	idle  []rested
	shots []Shot
}

// rested is a connection and when it was used last.
type rested struct {
	*Client
	at time.Time
}

// restMax is how long a connection may idle before it is used again: the proxy
// closes those that idle for 75 s, and no client can know whether it is just doing so.
const restMax = 30 * time.Second

// Shot is one request of a pulse and what became of it.
type Shot struct {
	ID     string // sent in the field X-Id
	Method string
	Status int // 0: no complete answer
	Body   string
	Err    error
	Start  time.Time
	Took   time.Duration // from when it was due
}

// Start begins to send.
func (p *Pulse) Start() *Pulse {
	p.stop = make(chan struct{})
	if len(p.Methods) == 0 {
		p.Methods = []string{"GET"}
	}
	if p.Within == 0 {
		p.Within = Deadline
	}
	p.done.Go(p.run)
	return p
}

// Stop ends the sending, waits for what runs and returns all shots.
func (p *Pulse) Stop() []Shot {
	close(p.stop)
	p.done.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		c.Close()
	}
	return p.shots
}

// Shots returns what is complete so far.
func (p *Pulse) Shots() []Shot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Shot(nil), p.shots...)
}

func (p *Pulse) run() {
	tick := time.NewTicker(time.Second / time.Duration(p.Rate))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			method, due := p.Methods[n%len(p.Methods)], time.Now()
			p.done.Go(func() { p.shoot(n, method, due) })
		}
	}
}

func (p *Pulse) shoot(n int, method string, due time.Time) {
	s := Shot{ID: fmt.Sprintf("r%d", n), Method: method, Start: due}
	m, err := p.exchange(n, s.ID, method)
	s.Err, s.Took = err, time.Since(due)
	if m != nil && err == nil {
		s.Status, s.Body = m.Status, string(m.Body)
	}
	p.mu.Lock()
	p.shots = append(p.shots, s)
	p.mu.Unlock()
}

func (p *Pulse) exchange(n int, id, method string) (*Message, error) {
	c, err := p.take()
	if err != nil {
		return nil, err
	}
	target := p.Target
	if p.Targets != nil {
		target = p.Targets(n)
	}
	lines := []string{method + " " + target + " HTTP/1.1", "Host: " + p.Host, "X-Id: " + id}
	body := ""
	if method == "POST" {
		body = id
		lines = append(lines, fmt.Sprintf("Content-Length: %d", len(body)))
	}
	err = c.TrySend(Lines(lines...) + body)
	var m *Message
	if err == nil {
		m, err = c.TryRead(method, p.Within)
	}
	if err != nil || m.Value("Connection") == "close" {
		c.Close()
		return m, err
	}
	p.mu.Lock()
	p.idle = append(p.idle, rested{c, time.Now()})
	p.mu.Unlock()
	return m, nil
}

// take returns an idle connection, or a new one if there is none.
func (p *Pulse) take() (*Client, error) {
	p.mu.Lock()
	if n := len(p.idle); n != 0 && time.Since(p.idle[n-1].at) < restMax {
		c := p.idle[n-1].Client
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	for _, c := range p.idle { // the last is the one that was used last
		c.Close()
	}
	p.idle = nil
	p.mu.Unlock()
	return connect(p.Addr)
}

// Failed returns the shots that got no answer with status.
func Failed(shots []Shot, status int) []Shot {
	var bad []Shot
	for _, s := range shots {
		if s.Err != nil || s.Status != status {
			bad = append(bad, s)
		}
	}
	return bad
}

func (s Shot) String() string {
	return fmt.Sprintf("%s %s at %s: status %d, body %.40q, %v after %v",
		s.Method, s.ID, s.Start.Format("05.000"), s.Status, s.Body, s.Err, s.Took.Round(time.Millisecond))
}
