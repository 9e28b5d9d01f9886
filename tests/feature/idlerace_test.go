package feature

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// racer is a backend that closes an idle connection 0 to 5 ms after its last
// answer, which is about when the next request comes. A request that it has read
// is executed: noted and answered. Once in a hundred it is too late for the
// answer.
type racer struct {
	mu       sync.Mutex
	executed map[string]int // by X-Id
	served   map[int]int    // by connection
}

func (r *racer) serve(x *rig.Exchange) {
	x.TCP.SetReadDeadline(time.Time{})
	if x.ReadBody() != nil {
		x.Close()
		return
	}
	r.mu.Lock()
	r.executed[x.Value("X-Id")]++
	r.served[x.Conn]++
	late := r.served[x.Conn] > 1 && rand.N(100) == 0
	r.mu.Unlock()
	if late {
		x.Close()
		return
	}
	x.Answer(200, x.Value("X-Id"))
	x.TCP.SetReadDeadline(time.Now().Add(rand.N(5 * time.Millisecond)))
}

// race sends n requests on each of four connections, with a pause of 0 to 5 ms
// before each, and returns what became of them.
func race(p *pool, method string, n int) []rig.Shot {
	var mu sync.Mutex
	var all []rig.Shot
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			session := rig.Session{Addr: p.Addr, Host: host, Prefix: fmt.Sprintf("%s-%d", method, i)}
			defer session.Close()
			for range n {
				<-time.After(rand.N(5 * time.Millisecond))
				s := session.Do(method)
				mu.Lock()
				all = append(all, s)
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	return all
}

func TestIdleConnectionsThatCloseCostNoRequest(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		t.Run(method, func(t *testing.T) {
			p := newPool(t, 1, nil, "--workers", "2", "--accept-policy", "hash")
			r := &racer{executed: map[string]int{}, served: map[int]int{}}
			p.handle(r.serve)
			shots := race(p, method, 750)
			bad := rig.Failed(shots, 200)
			if len(shots) != 3000 {
				t.Fatalf("%d requests, want 3,000", len(shots))
			}
			for _, s := range shots {
				n := r.executed[s.ID]
				switch {
				case method == "POST" && n > 1:
					t.Errorf("executed %d times: %v", n, s)
				case s.Status == 200 && (n == 0 || s.Body != s.ID):
					t.Errorf("answered without being executed: %v", s)
				case s.Status != 200 && (method == "GET" || s.Status != 502):
					t.Errorf("failed: %v", s)
				}
			}
			reused := p.Metric("weir_upstream_connections_reused_total")
			t.Logf("%d of %d failed; %v found a connection of the pool", len(bad), len(shots), reused)
			if reused < 300 {
				t.Errorf("only %v requests found a connection of the pool: there was no race", reused)
			}
			if method == "GET" && p.Metric("weir_upstream_retries_total") < 1 {
				t.Error("no request was repeated: none met a connection that was just closed")
			}
		})
	}
}
