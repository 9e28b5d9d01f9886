package feature

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

// delayed answers after d, which is how slow the endpoint is.
func delayed(d time.Duration) func(*rig.Exchange) {
	return func(x *rig.Exchange) {
		<-time.After(d)
		x.Answer(200, "slow")
	}
}

func TestRoundRobinSpreadsExactly(t *testing.T) {
	p := newPool(t, 3, settings{"load-balance": "round_robin"})
	p.backends[0].Handle(delayed(5 * time.Millisecond)) // which is no reason to spare it
	c := rig.Dial(t, p.Addr)
	for range 30 {
		c.Send(rig.Get(host, "/"))
		c.Read("GET")
	}
	for i, n := range p.hits() {
		if n != 10 {
			t.Errorf("endpoint %d got %d of 30 requests, want 10", i, n)
		}
	}
}

func TestEWMAPrefersTheFasterEndpoints(t *testing.T) {
	const requests = 200
	for _, endpoints := range []int{2, 4} {
		t.Run(fmt.Sprintf("%d endpoints", endpoints), func(t *testing.T) {
			p := newPool(t, endpoints, settings{"load-balance": "ewma"})
			p.backends[1].Handle(delayed(50 * time.Millisecond))
			c := rig.Dial(t, p.Addr)
			for range requests {
				c.Send(rig.Get(host, "/"))
				c.Read("GET")
			}
			hits := p.hits()
			if hits[1] == 0 || hits[1] > requests/10 {
				t.Errorf("requests by endpoint: %v, want the slow second one tried, and a tenth of all at most", hits)
			}
			for i, n := range hits {
				if i != 1 && n < requests/(2*endpoints) {
					t.Errorf("endpoint %d is fast and got %d of %d requests", i, n, requests)
				}
			}
		})
	}
}

// TestUpstreamHashByIsStickyAndSpreads: the same key meets the same endpoint on
// every connection and worker.
func TestUpstreamHashByIsStickyAndSpreads(t *testing.T) {
	const users = 100
	p := newPool(t, 4, settings{"upstream-hash-by": "$http_x_user", "load-balance": "ewma"}, "--workers", "2", "--accept-policy", "hash")
	by := make([]string, users)
	keys := map[string]int{}
	for round := range 4 {
		c := rig.Dial(t, p.Addr)
		for user := range users {
			c.Send(rig.Get(host, fmt.Sprintf("/%d/%d", round, user), fmt.Sprintf("X-User: user-%d", user)))
			name := string(c.Read("GET").Body)
			if round == 0 {
				by[user] = name
				keys[name]++
			}
			if by[user] != name {
				t.Errorf("round %d: user %d went to %s, before to %s", round, user, name, by[user])
			}
		}
	}
	for _, b := range p.backends {
		if keys[b.Name] < users/20 {
			t.Errorf("keys by endpoint: %v of %d; %s has too few", keys, users, b.Name)
		}
	}
}

// TestUpstreamHashByMovesOnlyTheKeysOfAnEndpointThatGoes.
func TestUpstreamHashByMovesOnlyTheKeysOfAnEndpointThatGoes(t *testing.T) {
	const users = 60
	p := newPool(t, 3, settings{"upstream-hash-by": "$http_x_user"})
	c := rig.Dial(t, p.Addr)
	ask := func(user int) string {
		c.Send(rig.Get(host, "/", fmt.Sprintf("X-User: user-%d", user)))
		return string(c.Read("GET").Body)
	}
	before := make([]string, users)
	for user := range users {
		before[user] = ask(user)
	}
	p.Delete(rig.Slice("t1", "s-1", "s", "", 1))
	rig.Eventually(t, rig.Deadline, "endpoint gone", func() error {
		for user := range users {
			if got := ask(user); got == "b1" {
				return fmt.Errorf("user %d goes to %s", user, got)
			}
		}
		return nil
	})
	for user, old := range before {
		if got := ask(user); old != "b1" && got != old {
			t.Errorf("user %d went to %s, now to %s, though that is still there", user, old, got)
		}
	}
}
