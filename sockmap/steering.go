package sockmap

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

const (
	WorkersMax   = 256 // that connections can be steered to
	ListenersMax = 64

	// WorkerBytes is the size of one worker's part of Steering.Memory.
	WorkerBytes = 64
)

// Config is what a Steering is made from.
type Config struct {
	Workers int    // 1 to WorkersMax
	CPUs    []int  // worker i runs on CPUs[i%len(CPUs)]; empty: anywhere
	Policy  Policy // at the start
	Pins    string // directory on bpffs for the maps, made if missing; "": they are not pinned
}

// Listener is a bound address and its listening sockets (SO_REUSEPORT), by worker.
type Listener struct {
	Addr    netip.AddrPort
	Sockets []int // not owned
}

// Steering chooses the worker of each new connection, in the kernel. Its methods may
// be called from any goroutine.
type Steering struct {
	workers  int
	cpus     int // that the machine can have
	maps     acceptMaps
	memory   []byte
	pins     string
	unpinned error // why the maps are not pinned, nil if they are or were not to be
	migrates bool

	mu        sync.Mutex
	policy    Policy
	listeners []steered
}

// steered is what one listener holds in the kernel.
type steered struct {
	sockets *ebpf.Map
	program *ebpf.Program
}

// New loads the maps and tries whether the kernel takes the program; nothing is
// steered before Attach. That maps can't be pinned is no error: see Unpinned.
func New(c Config) (s *Steering, err error) {
	if c.Workers < 1 || c.Workers > WorkersMax {
		return nil, fmt.Errorf("steer to %d workers: want 1 to %d", c.Workers, WorkersMax)
	}
	if err := rlimit.RemoveMemlock(); err != nil { // Linux 5.11 needs none
		return nil, fmt.Errorf("lift RLIMIT_MEMLOCK: %w", err)
	}
	s = &Steering{workers: c.Workers}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	if err := s.loadMaps(c); err != nil {
		return s, err
	}
	if err := s.SetPolicy(c.Policy); err != nil {
		return s, err
	}
	s.migrates = true
	trial, err := s.loadProgram(0)
	if err != nil { // older than 5.14, or for good
		s.migrates = false
		var again error
		if trial, again = s.loadProgram(0); again != nil {
			return s, err
		}
	}
	trial.Close()
	if c.Pins != "" {
		s.pins = c.Pins
		s.unpinned = pinAll(c.Pins, s.named())
	}
	return s, nil
}

// loadMaps makes the maps, maps the workers' one and deals out the CPUs.
func (s *Steering) loadMaps(c Config) error {
	var err error
	if s.cpus, err = ebpf.PossibleCPU(); err != nil {
		return fmt.Errorf("count the machine's CPUs: %w", err)
	}
	spec, err := s.spec()
	if err != nil {
		return err
	}
	if err := spec.LoadAndAssign(&s.maps, nil); err != nil {
		return fmt.Errorf("make the maps of weir_accept: %w", err)
	}
	s.memory, err = unix.Mmap(s.maps.WeirWorkers.FD(), 0, WorkersMax*WorkerBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map weir_workers into memory: %w", err)
	}
	for i := range uint32(c.Workers) {
		// Until it runs, a worker is as good as asleep: what waits for it is counted.
		if err := s.maps.WeirWorkers.Put(i, acceptWeirWorker{Number: i, State: acceptStateSTATE_IDLE}); err != nil {
			return fmt.Errorf("number worker %d: %w", i, err)
		}
	}
	for cpu, worker := range spread(s.cpus, c.Workers, c.CPUs) {
		if err := s.maps.WeirCpus.Put(uint32(cpu), worker); err != nil {
			return fmt.Errorf("set the worker of CPU %d: %w", cpu, err)
		}
	}
	return nil
}

// spec returns what bpf/accept.bpf.c was compiled to, made to this machine's measure.
func (s *Steering) spec() (*ebpf.CollectionSpec, error) {
	spec, err := loadAccept()
	if err != nil {
		return nil, err
	}
	spec.Maps[acceptMapWeirCpus].MaxEntries = uint32(s.cpus)
	return spec, nil
}

// loadProgram returns weir_accept for one listener.
func (s *Steering) loadProgram(listener int) (*ebpf.Program, error) {
	spec, err := s.spec()
	if err != nil {
		return nil, err
	}
	for name, v := range map[string]any{
		acceptVarListener: uint32(listener), acceptVarWorkers: uint32(s.workers), acceptVarMigrate: s.migrates,
	} {
		if err := spec.Variables[name].Set(v); err != nil {
			return nil, fmt.Errorf("set %s of weir_accept: %w", name, err)
		}
	}
	if !s.migrates {
		spec.Programs[acceptProgWeirAccept].AttachType = ebpf.AttachSkReuseportSelect
	}
	var p acceptPrograms
	err = spec.LoadAndAssign(&p, &ebpf.CollectionOptions{MapReplacements: s.named()})
	if err != nil {
		return nil, fmt.Errorf("load weir_accept: %w", err)
	}
	return p.WeirAccept, nil
}

// named returns the maps by their names.
func (s *Steering) named() map[string]*ebpf.Map {
	return map[string]*ebpf.Map{
		acceptMapWeirWorkers: s.maps.WeirWorkers, acceptMapWeirCpus: s.maps.WeirCpus,
		acceptMapWeirListeners: s.maps.WeirListeners, acceptMapWeirAddresses: s.maps.WeirAddresses,
		acceptMapWeirPolicy: s.maps.WeirPolicy, acceptMapWeirReasons: s.maps.WeirReasons,
	}
}

// Memory is where the workers tell their load, WorkerBytes each, as struct
// weir_worker of the program begins. It is valid until Close.
func (s *Steering) Memory() []byte { return s.memory[:s.workers*WorkerBytes] }

// Migrates reports whether connections that wait on a socket that is closed go to
// another worker (Linux 5.14).
func (s *Steering) Migrates() bool { return s.migrates }

// Unpinned says why the maps are not pinned although they were to be, or nil.
func (s *Steering) Unpinned() error { return s.unpinned }

// Attach steers the connections of a listener from now on, until its sockets are
// closed. Sockets of others at the same address, as those of an agent that is being
// replaced, get none any more.
func (s *Steering) Attach(l Listener) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("steer connections of %s: %w", l.Addr, err)
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.listeners)
	switch {
	case len(l.Sockets) != s.workers:
		return fmt.Errorf("%d sockets, want one for each of %d workers", len(l.Sockets), s.workers)
	case n == ListenersMax:
		return fmt.Errorf("it is one more than %d listeners", ListenersMax)
	}
	sockets, err := s.fill(l)
	if err != nil {
		return err
	}
	program, err := s.loadProgram(n)
	if err != nil {
		return errors.Join(err, sockets.Close())
	}
	err = s.maps.WeirAddresses.Put(uint32(n), address(l.Addr))
	if err == nil {
		err = s.maps.WeirListeners.Put(uint32(n), sockets)
	}
	if err == nil {
		err = unix.SetsockoptInt(l.Sockets[0], unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_EBPF, program.FD())
	}
	if err != nil {
		return errors.Join(err, sockets.Close(), program.Close())
	}
	s.listeners = append(s.listeners, steered{sockets, program})
	return nil
}

// fill returns a new array of a listener's sockets.
func (s *Steering) fill(l Listener) (*ebpf.Map, error) {
	spec, err := loadAccept()
	if err != nil {
		return nil, err
	}
	inner := spec.Maps[acceptMapWeirListeners].InnerMap.Copy()
	inner.Name = "weir_sockets"
	m, err := ebpf.NewMap(inner)
	if err != nil {
		return nil, err
	}
	for worker, fd := range l.Sockets {
		if err := m.Put(uint32(worker), uint64(fd)); err != nil {
			return nil, errors.Join(fmt.Errorf("enter the socket of worker %d: %w", worker, err), m.Close())
		}
	}
	return m, nil
}

func address(a netip.AddrPort) acceptWeirAddress {
	out := acceptWeirAddress{Port: a.Port()<<8 | a.Port()>>8, Family: 6}
	if a.Addr().Is4() {
		four := a.Addr().As4()
		out.Family = 4
		copy(out.Address[:], four[:])
	} else {
		out.Address = a.Addr().As16()
	}
	return out
}

// SetPolicy changes the policy for every connection that comes from now on.
func (s *Steering) SetPolicy(p Policy) error {
	n, err := p.number()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.maps.WeirPolicy.Put(uint32(0), n); err != nil {
		return fmt.Errorf("set the accept policy: %w", err)
	}
	s.policy = p
	return nil
}

// Policy returns the one in force.
func (s *Steering) Policy() Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policy
}

// Close releases the maps and the pins that are still its own. The workers have
// ended by then. Sockets that are open go on being steered.
func (s *Steering) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if s.pins != "" && s.unpinned == nil {
		errs = append(errs, unpinAll(s.pins, s.named()))
	}
	for _, l := range s.listeners {
		errs = append(errs, l.sockets.Close(), l.program.Close())
	}
	s.listeners = nil
	if s.memory != nil {
		errs = append(errs, unix.Munmap(s.memory))
		s.memory = nil
	}
	return errors.Join(append(errs, s.maps.Close())...)
}
