package l7

import (
	"testing"
	"time"

	"github.com/weirproxy/weir/l7/route"
)

func TestAllConnectsHang(t *testing.T) {
	const after, timeout = 50 * time.Millisecond, 300 * time.Millisecond
	for _, endpoints := range []int{2, 4} {
		var addrs []string
		for range endpoints {
			addrs = append(addrs, hangingAddr(t))
		}
		b := serve(t, Config{Upstream: UpstreamLimits{HedgeAfter: after}}, func(p *route.Policy) { p.ConnectTimeout = timeout }, addrs...)
		w := b.connect(t)
		start := time.Now()
		r, text := w.get()
		if took := time.Since(start); r.StatusCode != 504 || took < timeout || took > 3*timeout {
			t.Errorf("%d endpoints: %d %q after %v, want 504 after about %v", endpoints, r.StatusCode, text, took, timeout)
		}
		await(t, patience, "no connect is under way", func() bool { return b.server.Stats().Workers[0].UpstreamOpen == 0 })
	}
}

// TestAHedgeIsATry: the policy's only one hangs.
func TestAHedgeIsATry(t *testing.T) {
	good := newEndpoint(t, hello("good"))
	b := serve(t, Config{Upstream: UpstreamLimits{HedgeAfter: 20 * time.Millisecond}}, func(p *route.Policy) {
		p.ConnectTimeout, p.Tries = 200*time.Millisecond, 1
	}, hangingAddr(t), good.addr)
	w := b.connect(t)
	got := map[int]int{}
	for range 2 {
		r, _ := w.get()
		got[r.StatusCode]++
	}
	if got[504] != 1 || got[200] != 1 {
		t.Errorf("statuses %v, want one 504 and one 200", got)
	}
}
