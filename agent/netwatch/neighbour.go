package netwatch

import "net/netip"

// seat is an address on a link.
type seat struct {
	link int
	addr netip.Addr
}

// hardware is an Ethernet address.
type hardware [6]byte

// station is a hardware address on a bridge.
type station struct {
	bridge int
	mac    hardware
}

// neighbour is what the kernel knows of a seat.
type neighbour struct {
	mac    hardware
	failed bool // it was asked for three times and nobody answered
}

// setNeighbour takes over a neighbour. A failed one keeps the hardware address that
// it had.
func (t *table) setNeighbour(s seat, n neighbour) {
	old, known := t.neighbours[s]
	if n.failed {
		n.mac = old.mac
	}
	if known && old == n {
		return
	}
	t.removeNeighbour(s)
	t.neighbours[s] = n
	at := station{s.link, n.mac}
	if t.seats[at] == nil {
		t.seats[at] = make(map[netip.Addr]bool)
	}
	t.seats[at][s.addr] = true
}

func (t *table) removeNeighbour(s seat) {
	t.dirty[s.addr] = true
	n, known := t.neighbours[s]
	if !known {
		return
	}
	delete(t.neighbours, s)
	at := station{s.link, n.mac}
	delete(t.seats[at], s.addr)
	if len(t.seats[at]) == 0 {
		delete(t.seats, at)
	}
}

// setPort takes over behind which port of a bridge a station is; 0 is unknown.
func (t *table) setPort(s station, port int) {
	if t.ports[s] == port {
		return
	}
	t.ports[s] = port
	if port == 0 {
		delete(t.ports, s)
	}
	for a := range t.seats[s] {
		t.dirty[a] = true
	}
}
