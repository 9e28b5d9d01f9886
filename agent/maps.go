package agent

import (
	"net/netip"
	"time"

	"github.com/weirproxy/weir/sockmap"
)

// Pins is where an agent pins its BPF maps unless it is told otherwise.
const Pins = "/sys/fs/bpf/weir"

// MapsView is what the BPF maps of an agent hold.
type MapsView struct {
	Policy    string         `json:"policy"`
	Workers   []WorkerMap    `json:"workers"`
	CPUs      []int          `json:"cpus"` // by CPU: its worker, or -1
	Listeners []ListenerMap  `json:"listeners"`
	Decisions []DecisionsMap `json:"decisions"`
}

// WorkerMap is one worker as the kernel program sees it.
type WorkerMap struct {
	Worker      int           `json:"worker"`
	Connections uint32        `json:"connections"`
	Active      uint32        `json:"active"` // exchanges that run
	Accepted    uint64        `json:"accepted"`
	Reserved    uint32        `json:"reserved"` // given to it and not yet accepted
	State       string        `json:"state"`    // awake, idle or full
	Turn        time.Duration `json:"turn"`     // since its last turn, ns
}

// ListenerMap is a listener and the workers that have a socket there.
type ListenerMap struct {
	Address netip.AddrPort `json:"address"`
	Workers []int          `json:"workers"`
}

// DecisionsMap says how often the program decided something.
type DecisionsMap struct {
	Reason string `json:"reason"`
	Count  uint64 `json:"count"`
}

// Maps returns what the maps pinned in dir hold. The error is os.ErrNotExist if no
// agent has pinned any.
func Maps(dir string) (MapsView, error) {
	m, err := sockmap.Read(dir)
	if err != nil {
		return MapsView{}, err
	}
	return mapsView(m), nil
}

func mapsView(m sockmap.View) MapsView {
	v := MapsView{Policy: string(m.Policy), Workers: []WorkerMap{}, CPUs: m.CPUs, Listeners: []ListenerMap{}, Decisions: []DecisionsMap{}}
	for i, w := range m.Workers {
		state := "awake"
		switch {
		case w.Full:
			state = "full"
		case w.Idle:
			state = "idle"
		}
		v.Workers = append(v.Workers, WorkerMap{i, w.Connections, w.Active, w.Accepted, w.Reserved, state, w.Age})
	}
	for _, l := range m.Listeners {
		b := ListenerMap{Address: l.Addr, Workers: []int{}}
		for worker, there := range l.Sockets {
			if there {
				b.Workers = append(b.Workers, worker)
			}
		}
		v.Listeners = append(v.Listeners, b)
	}
	for _, r := range m.Reasons {
		v.Decisions = append(v.Decisions, DecisionsMap{r.Name, r.Count})
	}
	return v
}
