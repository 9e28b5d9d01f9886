package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"unsafe"

	"github.com/weirproxy/weir/l7"
	"github.com/weirproxy/weir/sockmap"
)

// Whether BPF is used; values of Config.BPF.
const (
	bpfAuto    = "auto"    // if the kernel and the rights allow it
	bpfOff     = "off"     // never
	bpfRequire = "require" // or the agent does not start
)

// Why the accept policy in force is not the wanted one: a label of metrics.
const (
	causeNone    = ""
	causeOff     = "off"     // BPF is switched off
	causeDenied  = "denied"  // rights are missing
	causeWorkers = "workers" // there are too many
	causeBroken  = "broken"  // the kernel can't, or said no
)

// accepting decides which worker gets a new connection, and knows why it is so.
type accepting struct {
	logger *slog.Logger
	pinned bool              // each worker has its CPU
	kernel *sockmap.Steering // nil: no program chooses

	mu     sync.Mutex
	wanted string
	cause  string
	err    error // of cause
}

// AcceptView is what is known of the accept policy.
type AcceptView struct {
	Policy     string `json:"policy"` // in force
	Wanted     string `json:"wanted"`
	Cause      string `json:"cause,omitempty"`  // why they differ: off, denied, workers or broken
	Reason     string `json:"reason,omitempty"` // the same in words
	Changeable bool   `json:"changeable"`       // by PUT /accept-policy
	Migrates   bool   `json:"migrates"`         // what waits for a worker that breaks goes to another
	Pinned     bool   `json:"pinned"`           // the maps are, for "weir maps" and bpftool
}

// openAccepting loads what c's policy needs. Without it, it falls back to the
// kernel's hash, unless c requires BPF. close releases it, after the workers ended.
func openAccepting(c Config, cpus []int) (*accepting, error) {
	a := &accepting{logger: c.Logger, pinned: len(cpus) > 0, wanted: c.AcceptPolicy}
	if a.wanted == "" {
		a.wanted = string(l7.AcceptShared)
	}
	switch p := l7.AcceptPolicy(a.wanted); {
	case p == l7.AcceptShared || p == l7.AcceptFountain:
		return a, nil
	case !a.ownSockets():
		return nil, fmt.Errorf("accept policy %q: want shared, fountain, hash, cpu or least-loaded", a.wanted)
	}
	if c.BPF == bpfOff || c.BPF == "" {
		a.cause, a.err = causeOff, errors.New("BPF is switched off")
		return a, nil
	}
	var err error
	a.kernel, err = sockmap.New(sockmap.Config{Workers: c.Workers, CPUs: cpus, Policy: sockmap.Policy(a.wanted), Pins: c.Pins})
	switch {
	case err == nil:
		return a, nil
	case c.BPF == bpfRequire:
		return nil, fmt.Errorf("BPF is required: %w; \"weir check\" tells what is missing", err)
	case errors.Is(err, os.ErrPermission):
		a.cause = causeDenied
	case c.Workers > sockmap.WorkersMax:
		a.cause = causeWorkers
	default:
		a.cause = causeBroken
	}
	a.err = err
	return a, nil
}

// openDataPath binds the listeners and makes the accept policy the wanted one.
func (a *agent) openDataPath(system System) error {
	c := a.config
	cpus, err := c.cpus(system)
	if err != nil {
		return err
	}
	accept, err := openAccepting(c, cpus)
	if err != nil {
		return err
	}
	server, err := l7.New(c.server(a.log, accept, cpus))
	if err == nil {
		if err = accept.attach(server.Listeners(), c.BPF == bpfRequire); err != nil {
			server.Close()
		}
	}
	if err != nil {
		return errors.Join(err, accept.close())
	}
	a.server, a.state.accept = server, accept
	return nil
}

// ownSockets reports whether each worker has listening sockets of its own.
func (a *accepting) ownSockets() bool { return steerable(a.wanted) }

// policy returns the one for the data path.
func (a *accepting) policy() l7.AcceptPolicy {
	if a.ownSockets() {
		return l7.AcceptHash
	}
	return l7.AcceptPolicy(a.wanted)
}

// loads returns where the workers tell their load, nil if nobody reads it.
func (a *accepting) loads() []l7.WorkerLoad {
	if a.kernel == nil {
		return nil
	}
	// The memory is shared with the kernel, so it can't be the garbage collector's.
	// TestWorkersTellTheirLoadAsTheProgramReadsIt holds the two layouts together.
	m := a.kernel.Memory()
	return unsafe.Slice((*l7.WorkerLoad)(unsafe.Pointer(&m[0])), len(m)/sockmap.WorkerBytes)
}

// attach begins to steer the connections of the listeners.
func (a *accepting) attach(listeners []l7.Listener, required bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range listeners {
		if a.kernel == nil {
			break
		}
		err := a.kernel.Attach(sockmap.Listener{Addr: l.Addr, Sockets: l.Sockets})
		if err == nil {
			continue
		}
		if required {
			return fmt.Errorf("BPF is required: %w", err)
		}
		// Those that are steered already fall back too. The workers keep telling
		// their load: the memory stays.
		a.cause, a.err = causeBroken, errors.Join(err, a.kernel.SetPolicy(sockmap.Hash))
		break
	}
	a.tell()
	return nil
}

// tell logs what is in force at the start.
func (a *accepting) tell() {
	v := a.view()
	switch {
	case v.Policy != v.Wanted:
		a.logger.Warn("the accept policy is not the wanted one", "policy", v.Policy, "wanted", v.Wanted, "cause", v.Cause, "reason", v.Reason)
	case v.Reason != "":
		a.logger.Info("accept policy; it can't be changed at run time", "policy", v.Policy, "reason", v.Reason)
	default:
		a.logger.Info("accept policy", "policy", v.Policy, "changeable", v.Changeable)
	}
	if a.kernel == nil {
		return
	}
	if err := a.kernel.Unpinned(); err != nil {
		a.logger.Warn("the BPF maps are not pinned: \"weir maps\" does not find them", "err", err)
	}
	if !v.Migrates {
		a.logger.Info("connections that wait for a worker that breaks are lost: the kernel is older than 5.14")
	}
}

// see is view with the lock.
func (a *accepting) see() AcceptView {
	if a == nil {
		return AcceptView{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.view()
}

func (a *accepting) view() AcceptView {
	v := AcceptView{Policy: a.wanted, Wanted: a.wanted, Cause: a.cause}
	if a.err != nil {
		v.Reason = a.err.Error()
	}
	if a.ownSockets() && (a.kernel == nil || a.cause != causeNone) {
		v.Policy = string(l7.AcceptHash)
	}
	if a.kernel != nil {
		v.Changeable = a.cause == causeNone
		v.Migrates = v.Changeable && a.kernel.Migrates()
		v.Pinned = a.kernel.Unpinned() == nil
	}
	return v
}

// errFixed is the error of a policy that can't be changed to now.
var errFixed = errors.New("can't be changed")

// set changes the policy for every connection that comes from now on.
func (a *accepting) set(policy string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	fixed := func(why string) error {
		return fmt.Errorf("the accept policy %s %w to %s: %s", a.wanted, errFixed, policy, why)
	}
	switch p := l7.AcceptPolicy(policy); {
	case !steerable(policy) && p != l7.AcceptShared && p != l7.AcceptFountain:
		return fmt.Errorf("accept policy %q: want hash, cpu or least-loaded", policy)
	case !steerable(policy) || !a.ownSockets():
		return fixed("that takes other listening sockets; restart with --accept-policy " + policy)
	case a.kernel == nil || a.cause != causeNone:
		return fixed(a.err.Error())
	case policy == string(sockmap.CPU) && !a.pinned:
		return fixed("workers are not pinned to CPUs")
	}
	if err := a.kernel.SetPolicy(sockmap.Policy(policy)); err != nil {
		return err
	}
	a.logger.Info("new accept policy", "policy", policy, "before", a.wanted)
	a.wanted = policy
	return nil
}

// steerable reports whether a policy is one that a program carries out.
func steerable(policy string) bool {
	p := sockmap.Policy(policy)
	return p == sockmap.Hash || p == sockmap.CPU || p == sockmap.LeastLoaded
}

// decisions returns what the program made of connections.
func (a *accepting) decisions() []sockmap.Reason {
	if a.kernel == nil {
		return nil
	}
	list, err := a.kernel.Reasons()
	if err != nil {
		a.logger.Error("read what became of connections", "err", err)
	}
	return list
}

func (a *accepting) close() error {
	if a.kernel == nil {
		return nil
	}
	return a.kernel.Close()
}
