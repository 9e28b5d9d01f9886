package sockmap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// needRoot skips, or fails if the environment promises root.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() == 0 {
		return
	}
	if os.Getenv("WEIR_REQUIRE_ROOT") == "1" {
		t.Fatal("not root although WEIR_REQUIRE_ROOT=1")
	}
	t.Skip("needs root: it loads BPF programs in a network namespace")
}

// world is a network namespace with a loopback. Everything in it happens on the
// test's locked thread, one thing after the other.
type world struct {
	t    *testing.T
	open []int // to be closed at the end
}

// newWorld moves the test's goroutine into a namespace; the thread ends with it.
func newWorld(t *testing.T) *world {
	t.Helper()
	needRoot(t)
	runtime.LockOSThread() // never unlocked
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t}
	fd := w.must(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, fd := range w.open {
			unix.Close(fd)
		}
	})
	return w
}

// must takes note of a descriptor.
func (w *world) must(fd int, err error) int {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	w.open = append(w.open, fd)
	return fd
}

// close closes a descriptor before the end.
func (w *world) close(fd int) {
	unix.Close(fd)
	w.open = slices.DeleteFunc(w.open, func(other int) bool { return other == fd })
}

// set writes a sysctl of the namespace.
func (w *world) set(name, value string) {
	w.t.Helper()
	if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0); err != nil {
		w.t.Fatal(err)
	}
}

// pinTo runs the rest of the test on one CPU. SYNs on loopback are handled by the
// sender's.
func (w *world) pinTo(cpu int) {
	w.t.Helper()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		w.t.Fatal(err)
	}
}

// steer returns a Steering whose workers have not begun: they count as asleep.
func (w *world) steer(c Config) *Steering {
	w.t.Helper()
	s, err := New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.t.Errorf("Close: %v", err)
		}
	})
	return s
}

// write changes a worker's load as the worker would.
func (s *Steering) write(worker int, edit func(*acceptWeirWorker)) {
	m := s.memory[worker*WorkerBytes:]
	var l acceptWeirWorker
	binary.Decode(m, binary.NativeEndian, &l)
	edit(&l)
	binary.Encode(m[:32], binary.NativeEndian, struct {
		Tick, Accepted             uint64
		Connections, Active, State uint32
		Reserved                   uint32
	}{l.Tick, l.Accepted, l.Connections, l.Active, uint32(l.State), l.Reserved})
}

func monotonic() uint64 {
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return uint64(now.Nano())
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Addr: a.Addr().As4(), Port: int(a.Port())}
	}
	return &unix.SockaddrInet6{Addr: a.Addr().As16(), Port: int(a.Port())}
}

func familyOf(a netip.AddrPort) int {
	if a.Addr().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// listen returns n listening sockets at addr, by worker.
func (w *world) listen(addr string, n int, options ...[2]int) Listener {
	w.t.Helper()
	l := Listener{Addr: netip.MustParseAddrPort(addr)}
	for range n {
		fd := w.must(unix.Socket(familyOf(l.Addr), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0))
		err := errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
		for _, o := range options {
			err = errors.Join(err, unix.SetsockoptInt(fd, unix.IPPROTO_TCP, o[0], o[1]))
		}
		if err = errors.Join(err, unix.Bind(fd, sockaddr(l.Addr)), unix.Listen(fd, 4096)); err != nil {
			w.t.Fatal(err)
		}
		l.Sockets = append(l.Sockets, fd)
	}
	return l
}

// attach is Steering.Attach of fresh sockets.
func (w *world) attach(s *Steering, addr string, options ...[2]int) Listener {
	w.t.Helper()
	l := w.listen(addr, s.workers, options...)
	if err := s.Attach(l); err != nil {
		w.t.Fatal(err)
	}
	return l
}

// connect opens n connections to l, from one address.
func (w *world) connect(l Listener, n int) []int {
	w.t.Helper()
	var out []int
	for i := range n {
		fd := w.must(unix.Socket(familyOf(l.Addr), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
		if err := unix.Connect(fd, sockaddr(l.Addr)); err != nil {
			w.t.Fatalf("connection %d of %d: %v", i, n, err)
		}
		out = append(out, fd)
	}
	return out
}

// accept takes what waits on each socket of l and answers each connection with the
// worker's number, then reads that at the clients' ends: none may be missing. It
// returns how many each worker got.
func (w *world) accept(l Listener, clients []int) []int {
	w.t.Helper()
	got := make([]int, len(l.Sockets))
	for worker, fd := range l.Sockets {
		for fd >= 0 {
			c, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
			if errors.Is(err, unix.EAGAIN) {
				break
			}
			w.must(c, err)
			if _, err := unix.Write(c, []byte{byte(worker)}); err != nil {
				w.t.Fatalf("write to a client of worker %d: %v", worker, err)
			}
			got[worker]++
		}
	}
	answered := make([]int, len(l.Sockets))
	for i, fd := range clients {
		wait := unix.NsecToTimeval(int64(2 * time.Second))
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)
		var b [1]byte
		n, err := unix.Read(fd, b[:])
		if n != 1 {
			w.t.Fatalf("connection %d of %d got no byte: %d, %v; accepted %v", i, len(clients), n, err, got)
		}
		answered[b[0]]++
	}
	if !slices.Equal(got, answered) {
		w.t.Errorf("workers accepted %v connections, of which %v were answered", got, answered)
	}
	return got
}

// reasons returns those that were counted, and fails if their sum is not total.
func (w *world) reasons(s *Steering, total uint64) map[string]uint64 {
	w.t.Helper()
	list, err := s.Reasons()
	if err != nil {
		w.t.Fatal(err)
	}
	out, sum := map[string]uint64{}, uint64(0)
	for _, r := range list {
		if r.Count > 0 {
			out[r.Name] = r.Count
		}
		sum += r.Count
	}
	if sum != total {
		w.t.Errorf("reasons %v add up to %d, want %d", out, sum, total)
	}
	return out
}

// bpffs mounts a BPF file system.
func bpffs(t *testing.T) string {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	if err := unix.Mount("bpf", dir, "bpf", 0, ""); err != nil {
		t.Fatal(fmt.Errorf("mount a BPF file system: %w", err))
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}
