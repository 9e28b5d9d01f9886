package sockmap

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const here = "127.0.0.1:80"

func TestLeastLoadedGivesEachWorkerAsMany(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 4, Policy: LeastLoaded})
	l := w.attach(s, here)
	// No worker accepts meanwhile: what was given counts already.
	if got := w.accept(l, w.connect(l, 400)); !slices.Equal(got, []int{100, 100, 100, 100}) {
		t.Errorf("workers got %v of 400 connections, want 100 each", got)
	}
	r := w.reasons(s, 400)
	if r["local"]+r["least_loaded"] != 400 {
		t.Errorf("reasons = %v, want local and least_loaded only", r)
	}
}

func TestLeastLoadedCountsConnectionsAndExchanges(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 3, Policy: LeastLoaded})
	l := w.attach(s, here)
	s.write(0, func(l *acceptWeirWorker) { l.Connections = 30 })
	s.write(1, func(l *acceptWeirWorker) { l.Connections, l.Active = 10, 10 })
	if got := w.accept(l, w.connect(l, 40)); !slices.Equal(got, []int{0, 10, 30}) {
		t.Errorf("workers with loads 30, 20 and 0 got %v of 40 connections, want [0 10 30]", got)
	}
}

func TestLeastLoadedPrefersTheWorkerOfTheCPU(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 2, CPUs: []int{0, 1}, Policy: LeastLoaded})
	l := w.attach(s, here)
	for cpu := range 2 {
		w.pinTo(cpu)
		before := w.reasons(s, uint64(2*cpu))
		got := w.accept(l, w.connect(l, 1))
		if got[cpu] != 1 {
			t.Errorf("two workers with equal loads: CPU %d gave its connection to workers %v", cpu, got)
		}
		// Even loads again.
		if got := w.accept(l, w.connect(l, 1)); got[1-cpu] != 1 {
			t.Errorf("the second connection of CPU %d went to workers %v, want the other one", cpu, got)
		}
		after := w.reasons(s, uint64(2*cpu+2))
		if after["local"] != before["local"]+1 || after["least_loaded"] != before["least_loaded"]+1 {
			t.Errorf("reasons went from %v to %v, want one local and one least_loaded more", before, after)
		}
	}
}

func TestCPUGivesConnectionsToTheWorkerOfTheCPU(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 2, CPUs: []int{1, 0}, Policy: CPU}) // not the identity
	l := w.attach(s, here)
	for cpu := range 2 {
		w.pinTo(cpu)
		got := w.accept(l, w.connect(l, guardMin))
		if got[1-cpu] != guardMin {
			t.Errorf("CPU %d: workers got %v of %d connections, want all at worker %d", cpu, got, guardMin, 1-cpu)
		}
	}
	if r := w.reasons(s, 2*guardMin); r["cpu"] != 2*guardMin {
		t.Errorf("reasons = %v, want cpu only", r)
	}
}

// guardMin is as many connections as the guard of policy cpu lets one worker have
// more than another.
const guardMin = 16

func TestCPUGuardsAgainstImbalance(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 2, CPUs: []int{0, 1}, Policy: CPU})
	l := w.attach(s, here)
	w.pinTo(0)
	got := w.accept(l, w.connect(l, 1000))
	// 1.25 x + 16 against x.
	if got[0] < 550 || got[0] > 575 {
		t.Errorf("all SYNs on CPU 0: workers got %v of 1000 connections, want about 560 and 440", got)
	}
	r := w.reasons(s, 1000)
	if r["cpu"] != uint64(got[0]) || r["imbalance"] != uint64(got[1]) {
		t.Errorf("reasons = %v with %v connections, want as many cpu and imbalance", r, got)
	}
}

func TestWorkersThatAreStuckOrFullGetNothing(t *testing.T) {
	for _, policy := range []Policy{CPU, LeastLoaded} {
		for _, tt := range []struct {
			name  string
			spoil func(*acceptWeirWorker)
		}{
			{"stuck", func(l *acceptWeirWorker) { l.State, l.Tick = 0, monotonic()-uint64(150*time.Millisecond) }},
			{"full", func(l *acceptWeirWorker) { l.State = acceptStateSTATE_IDLE | acceptStateSTATE_FULL }},
		} {
			t.Run(string(policy)+" "+tt.name, func(t *testing.T) {
				w := newWorld(t)
				s := w.steer(Config{Workers: 2, CPUs: []int{0, 1}, Policy: policy})
				l := w.attach(s, here)
				w.pinTo(0)
				s.write(1, func(l *acceptWeirWorker) { l.Connections = 1000 })
				s.write(0, tt.spoil)
				if got := w.accept(l, w.connect(l, 50)); !slices.Equal(got, []int{0, 50}) {
					t.Errorf("workers got %v of 50 connections, want none at worker 0", got)
				}
				r := w.reasons(s, 50)
				if policy == CPU && r["unfit"] != 50 {
					t.Errorf("reasons = %v, want unfit only", r)
				}
			})
		}
	}
}

func TestAWorkerThatSleepsIsNotStuck(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 2, CPUs: []int{0, 1}, Policy: CPU})
	l := w.attach(s, here)
	w.pinTo(0)
	s.write(0, func(l *acceptWeirWorker) { l.Tick = monotonic() - uint64(time.Hour) })
	if got := w.accept(l, w.connect(l, 10)); !slices.Equal(got, []int{10, 0}) {
		t.Errorf("workers got %v of 10 connections, want all at worker 0, which sleeps", got)
	}
}

func TestIfAllAreStuckTheKernelChooses(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 2, Policy: LeastLoaded})
	l := w.attach(s, here)
	for i := range 2 {
		s.write(i, func(l *acceptWeirWorker) { l.State = 0 })
	}
	got := w.accept(l, w.connect(l, 100))
	if got[0] == 0 || got[1] == 0 || got[0]+got[1] != 100 {
		t.Errorf("workers got %v of 100 connections, want some each and none lost", got)
	}
	if r := w.reasons(s, 100); r["no_worker"] != 100 {
		t.Errorf("reasons = %v, want no_worker only", r)
	}
}

func TestHashLeavesTheChoiceToTheKernel(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 2, Policy: Hash})
	l := w.attach(s, here)
	s.write(0, func(l *acceptWeirWorker) { l.Connections = 1000 })
	if got := w.accept(l, w.connect(l, 100)); got[0] == 0 || got[1] == 0 {
		t.Errorf("workers got %v of 100 connections, want some each whatever their load", got)
	}
	if r := w.reasons(s, 100); r["hash"] != 100 {
		t.Errorf("reasons = %v, want hash only", r)
	}
}

func TestEachListenerHasItsOwnSockets(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 2, Policy: LeastLoaded})
	for _, addr := range []string{"127.0.0.1:80", "0.0.0.0:81", "[::1]:80", "[::]:81"} {
		l := w.attach(s, addr)
		if got := w.accept(l, w.connect(l, 20)); !slices.Equal(got, []int{10, 10}) {
			t.Errorf("%s: workers got %v of 20 connections, want 10 each", addr, got)
		}
	}
	w.reasons(s, 80)
}

func TestSYNCookies(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:80", "[::1]:80"} {
		for _, policy := range []Policy{CPU, LeastLoaded} {
			t.Run(addr+" "+string(policy), func(t *testing.T) {
				w := newWorld(t)
				w.set("ipv4/tcp_syncookies", "2") // always
				s := w.steer(Config{Workers: 2, CPUs: []int{0, 1}, Policy: policy})
				l := w.attach(s, addr)
				got := w.accept(l, w.connect(l, 200))
				if got[0]+got[1] != 200 {
					t.Errorf("workers got %v of 200 connections", got)
				}
				w.reasons(s, 400) // SYN and ACK each choose
				for i := range 2 {
					var l acceptWeirWorker
					if err := s.maps.WeirWorkers.Lookup(uint32(i), &l); err != nil {
						t.Fatal(err)
					}
					if l.Reserved > 200 {
						t.Errorf("worker %d has %d reservations for 200 connections: the ACK took some too", i, l.Reserved)
					}
				}
			})
		}
	}
}

// giveTo makes n connections to l reservations of worker 0 of two.
func (w *world) giveTo(s *Steering, l Listener, n int) []int {
	w.t.Helper()
	idle := func(also acceptState) func(*acceptWeirWorker) {
		return func(l *acceptWeirWorker) { l.State = acceptStateSTATE_IDLE | also }
	}
	s.write(1, idle(acceptStateSTATE_FULL))
	clients := w.connect(l, n)
	s.write(1, idle(0))
	return clients
}

// TestHandshakesThatNeverEndHoldNothingForLong: with TCP_DEFER_ACCEPT a connection
// without a byte stays a handshake.
func TestHandshakesThatNeverEndHoldNothingForLong(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 2, Policy: LeastLoaded})
	l := w.attach(s, here, [2]int{unix.TCP_DEFER_ACCEPT, 30})
	k := w.attach(s, "127.0.0.1:81")
	w.giveTo(s, l, 40)
	if got := w.accept(k, w.connect(k, 20)); !slices.Equal(got, []int{0, 20}) {
		t.Errorf("beside 40 handshakes of worker 0 workers got %v of 20 connections, want [0 20]", got)
	}
	s.write(0, func(l *acceptWeirWorker) { l.Tick = monotonic() }) // else it is not listed
	reserved := func() uint32 {
		workers, err := readWorkers(s.maps.WeirWorkers)
		if err != nil || len(workers) != 1 {
			t.Fatalf("workers = %v, %v, want the one that has begun", workers, err)
		}
		return workers[0].Reserved
	}
	if n := reserved(); n != 40 {
		t.Errorf("%d reservations of worker 0, want 40", n)
	}
	for end := time.Now().Add(3 * time.Second); reserved() != 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d reservations after 3 s", reserved())
		}
	}
	s.write(1, func(l *acceptWeirWorker) { l.Connections = 10 })
	if got := w.accept(k, w.connect(k, 5)); !slices.Equal(got, []int{5, 0}) {
		t.Errorf("later workers with 0 and 10 connections got %v of 5, want [5 0]", got)
	}
}

func TestWhatIsAcceptedIsNoLongerReserved(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 2, Policy: LeastLoaded})
	l := w.attach(s, here)
	w.accept(l, w.giveTo(s, l, 40))
	s.write(0, func(l *acceptWeirWorker) { l.Accepted += 40 }) // and they are closed again
	s.write(1, func(l *acceptWeirWorker) { l.Connections = 10 })
	if got := w.accept(l, w.connect(l, 5)); !slices.Equal(got, []int{5, 0}) {
		t.Errorf("workers with 0 and 10 connections got %v of 5, want [5 0]", got)
	}
}

func TestThePolicyChangesWithoutLosingAConnection(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 2, CPUs: []int{0, 1}, Policy: Hash})
	l := w.attach(s, here)
	policies := []Policy{CPU, LeastLoaded, Hash}
	for i := range 300 {
		if err := s.SetPolicy(policies[i%3]); err != nil {
			t.Fatal(err)
		}
		clients := w.connect(l, 5)
		if got := w.accept(l, clients); got[0]+got[1] != 5 {
			t.Fatalf("after change %d workers got %v of 5 connections", i, got)
		}
		for _, fd := range slices.Clone(w.open[len(w.open)-10:]) {
			w.close(fd)
		}
	}
	if r := w.reasons(s, 1500); r["hash"] != 500 {
		t.Errorf("reasons = %v, want 500 hash", r)
	}
	if err := s.SetPolicy("random"); err == nil || s.Policy() != Hash {
		t.Errorf("SetPolicy(random) = %v, policy %s; want an error and hash", err, s.Policy())
	}
}

func TestMoreWorkersThanItHasRoomForAreRefused(t *testing.T) {
	if _, err := New(Config{Workers: WorkersMax + 1, Policy: CPU}); err == nil {
		t.Errorf("New with %d workers succeeded", WorkersMax+1)
	}
}

func TestAsManyWorkersAsThereIsRoomFor(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: WorkersMax, Policy: LeastLoaded})
	l := w.attach(s, here)
	if got := w.accept(l, w.connect(l, 2*WorkersMax)); slices.Max(got) != 2 || slices.Min(got) != 2 {
		t.Errorf("%d workers got %v, want 2 each", WorkersMax, got)
	}
}
