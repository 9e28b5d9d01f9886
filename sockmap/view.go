package sockmap

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// reasonNames are those of enum reason, in its order.
var reasonNames = [acceptReasonREASONS]string{
	"cpu", "imbalance", "unfit", "local", "least_loaded", "migrated", "hash", "no_worker", "no_socket", "no_listener",
}

// Reason says how often something became of a connection; bpf/accept.bpf.c tells
// what each means.
type Reason struct {
	Name  string
	Count uint64
}

// Worker is one worker as weir_accept sees it.
type Worker struct {
	Connections uint32
	Active      uint32 // exchanges that run
	Accepted    uint64
	Reserved    uint32        // connections given and not yet accepted, as far as they count
	Idle        bool          // it sleeps until something comes
	Full        bool          // it takes no connection now
	Age         time.Duration // of its last turn
}

// Bound is a listener and, by worker, whether that has a socket there.
type Bound struct {
	Addr    netip.AddrPort
	Sockets []bool
}

// View is what the maps hold at one moment.
type View struct {
	Policy    Policy
	Workers   []Worker
	CPUs      []int // by CPU: its worker, or -1
	Listeners []Bound
	Reasons   []Reason // all, in a fixed order
}

// Reasons returns what became of connections so far: all reasons, in a fixed order.
func (s *Steering) Reasons() ([]Reason, error) { return readReasons(s.maps.WeirReasons) }

// Read returns what the maps pinned in dir hold.
func Read(dir string) (v View, err error) {
	open := map[string]*ebpf.Map{}
	defer func() {
		for _, m := range open {
			err = errors.Join(err, m.Close())
		}
	}()
	for _, name := range []string{acceptMapWeirWorkers, acceptMapWeirCpus, acceptMapWeirListeners, acceptMapWeirAddresses,
		acceptMapWeirPolicy, acceptMapWeirReasons} {
		m, err := ebpf.LoadPinnedMap(filepath.Join(dir, name), &ebpf.LoadPinOptions{ReadOnly: true})
		if err != nil {
			return v, fmt.Errorf("open %s in %s: %w", name, dir, err)
		}
		open[name] = m
	}
	var n acceptPolicy
	if err := open[acceptMapWeirPolicy].Lookup(uint32(0), &n); err != nil {
		return v, fmt.Errorf("read weir_policy: %w", err)
	}
	v.Policy = policyOf(n)
	if v.Workers, err = readWorkers(open[acceptMapWeirWorkers]); err != nil {
		return v, err
	}
	if v.CPUs, err = readCPUs(open[acceptMapWeirCpus]); err != nil {
		return v, err
	}
	if v.Listeners, err = readListeners(open[acceptMapWeirListeners], open[acceptMapWeirAddresses], len(v.Workers)); err != nil {
		return v, err
	}
	v.Reasons, err = readReasons(open[acceptMapWeirReasons])
	return v, err
}

// readWorkers returns the workers up to the last that has ever turned its loop.
func readWorkers(m *ebpf.Map) ([]Worker, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return nil, err
	}
	var out []Worker
	n := 0
	for i := range uint32(WorkersMax) {
		var w acceptWeirWorker
		if err := m.Lookup(i, &w); err != nil {
			return nil, fmt.Errorf("read weir_workers: %w", err)
		}
		out = append(out, worker(w, uint64(now.Nano())))
		if w.Tick != 0 {
			n = len(out)
		}
	}
	return out[:n], nil
}

// reservedTime is RESERVED_NS of the program.
const reservedTime = time.Second

func worker(w acceptWeirWorker, now uint64) Worker {
	out := Worker{
		Connections: w.Connections, Active: w.Active, Accepted: w.Accepted,
		Idle: w.State&acceptStateSTATE_IDLE != 0, Full: w.State&acceptStateSTATE_FULL != 0,
		Age: time.Duration(now - min(now, w.Tick)),
	}
	taken := w.Accepted - w.ReservedAccepted
	if now-w.ReservedSince < uint64(reservedTime) && uint64(w.Reserved) > taken {
		out.Reserved = w.Reserved - uint32(taken)
	}
	return out
}

func readCPUs(m *ebpf.Map) ([]int, error) {
	out := make([]int, m.MaxEntries())
	for cpu := range out {
		var worker uint32
		if err := m.Lookup(uint32(cpu), &worker); err != nil {
			return nil, fmt.Errorf("read weir_cpus: %w", err)
		}
		out[cpu] = int(worker)
		if worker >= WorkersMax {
			out[cpu] = -1
		}
	}
	return out, nil
}

func readListeners(listeners, addresses *ebpf.Map, workers int) ([]Bound, error) {
	var out []Bound
	for i := range uint32(ListenersMax) {
		var sockets *ebpf.Map
		err := listeners.Lookup(i, &sockets)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read weir_listeners: %w", err)
		}
		b, err := bound(sockets, workers)
		if err = errors.Join(err, sockets.Close()); err != nil {
			return nil, err
		}
		var a acceptWeirAddress
		if err := addresses.Lookup(i, &a); err != nil {
			return nil, fmt.Errorf("read weir_addresses: %w", err)
		}
		b.Addr = addrPort(a)
		out = append(out, b)
	}
	return out, nil
}

func bound(sockets *ebpf.Map, workers int) (Bound, error) {
	b := Bound{Sockets: make([]bool, workers)}
	for i := range b.Sockets {
		var cookie uint64
		err := sockets.Lookup(uint32(i), &cookie)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return b, fmt.Errorf("read weir_sockets: %w", err)
		}
		b.Sockets[i] = err == nil
	}
	return b, nil
}

func addrPort(a acceptWeirAddress) netip.AddrPort {
	port := a.Port<<8 | a.Port>>8
	if a.Family == 4 {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a.Address[:4])), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(a.Address), port)
}

func readReasons(m *ebpf.Map) ([]Reason, error) {
	out := make([]Reason, len(reasonNames))
	for i, name := range reasonNames {
		var perCPU []uint64
		if err := m.Lookup(uint32(i), &perCPU); err != nil {
			return nil, fmt.Errorf("read weir_reasons: %w", err)
		}
		out[i].Name = name
		for _, n := range perCPU {
			out[i].Count += n
		}
	}
	return out, nil
}
