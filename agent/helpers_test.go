package agent

import (
	"log/slog"
	"net/netip"
	"runtime"
	"testing"
	"time"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func addr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// eventually waits until ok is true and fails after 10 s.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("after 10 s still not: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// leaksNothing fails if more goroutines run at the end of the test than now.
func leaksNothing(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		eventually(t, "as few goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
	})
}
