package l7

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirproxy/weir/l7/route"
)

// takenOver waits until worker 0 has taken over n changes and returns how long the
// last of them took since it was seen; before are those from earlier.
func takenOver(t *testing.T, s *Server, before Durations) time.Duration {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		d := s.Stats().Workers[0].TakeOver
		var n uint64
		for i := range d.Counts {
			n += d.Counts[i] - before.Counts[i]
		}
		if n == 1 {
			return time.Duration(d.SumMicros-before.SumMicros) * time.Microsecond
		}
		if n > 1 || time.Now().After(deadline) {
			t.Fatalf("%d changes taken over, want 1", n)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestTakingOverAChangeIsMeasuredFromWhenItWasSeen(t *testing.T) {
	origin := httptest.NewServer(http.NotFoundHandler())
	defer origin.Close()
	b := serve(t, Config{}, nil, addrOf(origin))
	response, err := http.Get(b.url)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	before := b.server.Stats().Workers[0].TakeOver

	time.Sleep(60 * time.Millisecond) // no worker measures what was before it
	start := time.Now()
	seen := start.Add(-50 * time.Millisecond)
	b.cluster.SetEndpoints(route.Listing{})
	b.server.Measure(seen)
	b.server.Measure(start) // with an older one waiting it does not count
	b.server.EndpointsChanged()
	took := takenOver(t, b.server, before)
	if most := time.Since(seen); took < 49*time.Millisecond || took > most {
		t.Errorf("taken over %s after it was seen, want 50 ms to %s", took, most)
	}

	before = b.server.Stats().Workers[0].TakeOver
	b.server.Measure(start)
	b.server.Measure(seen)
	b.server.EndpointsChanged()
	if took, least := takenOver(t, b.server, before), 50*time.Millisecond; took < least {
		t.Errorf("the newer of two changes counts: %s, want %s or more", took, least)
	}

	before = b.server.Stats().Workers[0].TakeOver
	b.server.EndpointsChanged()
	time.Sleep(20 * time.Millisecond)
	if after := b.server.Stats().Workers[0].TakeOver; after != before {
		t.Errorf("a change that nobody measures counts: %+v", after)
	}
}
