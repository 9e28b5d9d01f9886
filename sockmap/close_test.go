package sockmap

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestConnectionsOfASocketThatIsClosedGoToOthers(t *testing.T) {
	for _, policy := range []Policy{Hash, CPU, LeastLoaded} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t)
			w.set("ipv4/tcp_migrate_req", "0") // the program alone does it
			s := w.steer(Config{Workers: 3, CPUs: []int{0, 1}, Policy: policy})
			if !s.Migrates() {
				t.Skip("needs Linux 5.14")
			}
			l := w.attach(s, here)
			clients := w.connect(l, 90)
			w.close(l.Sockets[0])
			l.Sockets[0] = -1
			got := w.accept(l, clients) // fails if one is missing
			if got[0] != 0 || got[1]+got[2] != 90 {
				t.Errorf("workers got %v of 90 connections, want all at the two that are left", got)
			}
			list, err := s.Reasons()
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(list, func(r Reason) bool { return r.Name == "migrated" })
			if policy == LeastLoaded && list[i].Count != 30 {
				t.Errorf("%d migrated, want the 30 of worker 0; reasons %v", list[i].Count, list)
			}
			if got := w.accept(l, w.connect(l, 50)); got[1]+got[2] != 50 {
				t.Errorf("afterwards workers got %v of 50 connections", got)
			}
		})
	}
}

// TestHandshakesOfASocketThatIsClosedGoOn: with TCP_DEFER_ACCEPT a connection is
// between SYN and ACK until its first byte.
func TestHandshakesOfASocketThatIsClosedGoOn(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 2, Policy: LeastLoaded})
	if !s.Migrates() {
		t.Skip("needs Linux 5.14")
	}
	l := w.attach(s, here, [2]int{unix.TCP_DEFER_ACCEPT, 30})
	clients := w.connect(l, 40)
	if got := w.accept(l, nil); !slices.Equal(got, []int{0, 0}) {
		t.Fatalf("workers got %v before the first byte", got)
	}
	w.close(l.Sockets[1])
	l.Sockets[1] = -1
	for _, fd := range clients {
		if _, err := unix.Write(fd, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.accept(l, clients); !slices.Equal(got, []int{40, 0}) {
		t.Errorf("workers got %v of 40 connections, want all at worker 0", got)
	}
}

func TestAShutDownSocketLeavesTheChoice(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 2, Policy: LeastLoaded})
	l := w.attach(s, here)
	clients := w.connect(l, 10)
	if err := unix.Shutdown(l.Sockets[0], unix.SHUT_RD); err != nil { // what l7 does with a broken worker
		t.Fatal(err)
	}
	clients = append(clients, w.connect(l, 30)...)
	left := Listener{Addr: l.Addr, Sockets: []int{-1, l.Sockets[1]}}
	if got := w.accept(left, clients); !slices.Equal(got, []int{0, 40}) {
		t.Errorf("workers got %v of 40 connections, want all at worker 1", got)
	}
	b, err := readListeners(s.maps.WeirListeners, s.maps.WeirAddresses, 2)
	if err != nil || len(b) != 1 || !slices.Equal(b[0].Sockets, []bool{false, true}) {
		t.Errorf("listeners = %v, %v; want worker 1 only", b, err)
	}
	// Worker 0 still looks as if it slept.
	if r := w.reasons(s, 45); r["local"]+r["least_loaded"] != 40 || r["migrated"] != 5 {
		t.Errorf("reasons = %v, want 5 migrated and 40 of least-loaded", r)
	}
}

func TestWithoutASocketTheKernelChooses(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 3, Policy: LeastLoaded})
	l := w.attach(s, here)
	for i := range 2 {
		w.close(l.Sockets[i])
		l.Sockets[i] = -1
	}
	s.write(2, func(l *acceptWeirWorker) { l.Connections = 1000 })
	if got := w.accept(l, w.connect(l, 20)); !slices.Equal(got, []int{0, 0, 20}) {
		t.Errorf("workers got %v of 20 connections, want all at worker 2", got)
	}
	if r := w.reasons(s, 20); r["no_socket"] != 20 {
		t.Errorf("reasons = %v, want no_socket only", r)
	}
}

// TestANewAgentTakesOver: both have sockets at one address for a while.
func TestANewAgentTakesOver(t *testing.T) {
	w := newWorld(t)
	before := w.steer(Config{Workers: 2, Policy: LeastLoaded})
	if !before.Migrates() {
		t.Skip("needs Linux 5.14")
	}
	l := w.attach(before, here)
	waiting := w.connect(l, 20)
	after := w.steer(Config{Workers: 3, Policy: LeastLoaded})
	k := w.attach(after, here)
	clients := w.connect(k, 30)
	if got := w.accept(l, waiting); got[0]+got[1] != 20 {
		t.Errorf("the old agent got %v of its 20 connections", got)
	}
	if got := w.accept(k, clients); !slices.Equal(got, []int{10, 10, 10}) {
		t.Errorf("the new agent's workers got %v of 30 connections, want 10 each", got)
	}
	for _, fd := range l.Sockets {
		w.close(fd)
	}
	if got := w.accept(k, w.connect(k, 30)); !slices.Equal(got, []int{10, 10, 10}) {
		t.Errorf("after the old one's end they got %v of 30, want 10 each", got)
	}
	w.reasons(before, 20)
	w.reasons(after, 60)
}
