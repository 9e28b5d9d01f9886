package sockmap

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestNamesFitWhatTheKernelKeeps(t *testing.T) {
	spec, err := loadAccept()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"weir_sockets"}
	for name := range spec.Maps {
		if !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	for name := range spec.Programs {
		names = append(names, name)
	}
	if len(names) < 8 {
		t.Fatalf("names = %v, want those of all maps and programs", names)
	}
	for _, name := range names {
		if len(name) > 15 || !strings.HasPrefix(name, "weir_") {
			t.Errorf("%q has %d characters, want weir_ and at most 15", name, len(name))
		}
	}
}

func TestEveryReasonHasItsName(t *testing.T) {
	for i, name := range reasonNames {
		if name == "" || slices.Index(reasonNames[:], name) != i {
			t.Errorf("reason %d is called %q", i, name)
		}
	}
}

func TestPinsShowWhatTheMapsHold(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(bpffs(t), "weir")
	s, err := New(Config{Workers: 2, CPUs: []int{1}, Policy: LeastLoaded, Pins: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Unpinned(); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		s.write(i, func(l *acceptWeirWorker) {
			l.Tick, l.State, l.Connections, l.Active, l.Accepted = monotonic(), acceptState(i), uint32(3+i), 2, 7
		})
	}
	for _, addr := range []string{"127.0.0.1:80", "[::1]:8080"} {
		w.attach(s, addr)
	}
	v, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if v.Policy != LeastLoaded || len(v.Reasons) != len(reasonNames) {
		t.Errorf("policy %q, %d reasons", v.Policy, len(v.Reasons))
	}
	for i := range v.Workers {
		v.Workers[i].Age = 0
	}
	want := []Worker{{Connections: 3, Active: 2, Accepted: 7}, {Connections: 4, Active: 2, Accepted: 7, Idle: true}}
	if !slices.Equal(v.Workers, want) {
		t.Errorf("workers = %+v, want %+v", v.Workers, want)
	}
	if len(v.CPUs) < 2 || v.CPUs[1] != 0 || v.CPUs[0] != 0 {
		t.Errorf("CPUs = %v, want worker 0 for CPU 1, and the first CPU without a worker dealt to worker 0", v.CPUs)
	}
	for i, addr := range []string{"127.0.0.1:80", "[::1]:8080"} {
		if len(v.Listeners) != 2 || v.Listeners[i].Addr != netip.MustParseAddrPort(addr) || !slices.Equal(v.Listeners[i].Sockets, []bool{true, true}) {
			t.Errorf("listeners = %+v, want %s with two sockets at %d", v.Listeners, addr, i)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close the directory of pins: %v, want it gone", err)
	}
	if _, err := Read(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Read without pins = %v, want not found", err)
	}
}

func TestAnAgentReplacesPinsAndRemovesOnlyItsOwn(t *testing.T) {
	dir := filepath.Join(bpffs(t), "weir")
	start := func(p Policy) *Steering {
		s, err := New(Config{Workers: 1, Policy: p, Pins: dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Unpinned(); err != nil {
			t.Fatal(err)
		}
		return s
	}
	policy := func() Policy {
		v, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		return v.Policy
	}
	first := start(CPU)
	if got := policy(); got != CPU {
		t.Errorf("the pins show policy %q, want cpu", got)
	}
	second := start(LeastLoaded)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got := policy(); got != LeastLoaded {
		t.Errorf("after the first agent's end the pins show %q, want the second's", got)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 6 {
		t.Errorf("%d pins, %v; want the 6 maps and nothing half done: %v", len(entries), err, entries)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestWithoutABPFFileSystemItWorksUnpinned(t *testing.T) {
	needRoot(t)
	s, err := New(Config{Workers: 1, Policy: CPU, Pins: filepath.Join(t.TempDir(), "weir")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Unpinned(); err == nil || !strings.Contains(err.Error(), "mount -t bpf") {
		t.Errorf("Unpinned = %v, want what to do", err)
	}
}

// TestTheProgramLoadsWithoutMigration: what kernels before 5.14 get.
func TestTheProgramLoadsWithoutMigration(t *testing.T) {
	w := newWorld(t)
	s := w.steer(Config{Workers: 2, Policy: LeastLoaded})
	s.migrates = false
	l := w.attach(s, here)
	if got := w.accept(l, w.connect(l, 20)); !slices.Equal(got, []int{10, 10}) {
		t.Errorf("workers got %v of 20 connections, want 10 each", got)
	}
}

func TestWithoutCapabilitiesTheErrorIsPlain(t *testing.T) {
	needRoot(t)
	runtime.LockOSThread() // never unlocked: the thread ends without capabilities
	keepOnly(t)
	s, err := New(Config{Workers: 1, Policy: CPU})
	if s != nil || !errors.Is(err, unix.EPERM) {
		t.Errorf("New = %v, %v; want nil and EPERM", s, err)
	}
}

// TestTheDocumentedCapabilitiesSuffice: docs/ebpf.md names them.
func TestTheDocumentedCapabilitiesSuffice(t *testing.T) {
	dir := filepath.Join(bpffs(t), "weir")
	w := newWorld(t)
	keepOnly(t, unix.CAP_BPF, unix.CAP_NET_BIND_SERVICE)
	s, err := New(Config{Workers: 2, Policy: LeastLoaded, Pins: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Unpinned(); err != nil {
		t.Error(err)
	}
	l := w.attach(s, here)
	if got := w.accept(l, w.connect(l, 20)); !slices.Equal(got, []int{10, 10}) {
		t.Errorf("workers got %v of 20 connections, want 10 each", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// keepOnly makes all other capabilities of the thread ineffective until the test ends.
func keepOnly(t *testing.T, capabilities ...int) {
	t.Helper()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var before [2]unix.CapUserData
	if err := unix.Capget(&header, &before[0]); err != nil {
		t.Fatal(err)
	}
	sets := before
	sets[0].Effective, sets[1].Effective = 0, 0
	for _, c := range capabilities {
		sets[c/32].Effective |= 1 << (c % 32)
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Capset(&header, &before[0]); err != nil {
			t.Error(err)
		}
	})
}

func TestEveryCPUHasAWorker(t *testing.T) {
	for _, tt := range []struct {
		name    string
		n       int
		workers int
		cpus    []int
		want    []uint32
	}{
		{"one each", 2, 2, []int{0, 1}, []uint32{0, 1}},
		{"numbers differ", 4, 2, []int{3, 1}, []uint32{0, 1, 1, 0}},
		{"fewer workers", 4, 1, []int{2, 3}, []uint32{0, 0, 0, 0}},
		{"more workers than CPUs", 2, 4, []int{0, 1}, []uint32{0, 1}},
		{"not pinned", 3, 2, nil, []uint32{0, 1, 0}},
	} {
		if got := spread(tt.n, tt.workers, tt.cpus); !slices.Equal(got, tt.want) {
			t.Errorf("%s: spread(%d, %d, %v) = %v, want %v", tt.name, tt.n, tt.workers, tt.cpus, got, tt.want)
		}
	}
}
