package netwatch

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// sizeofNdMsg is the size of struct ndmsg: family, three bytes of padding, link,
// state, flags, type.
const sizeofNdMsg = 12

// ndHead is what counts of an ndmsg.
type ndHead struct {
	family uint8
	link   int
	state  uint16
}

// ndMsg reads the head of a message, which has at least sizeofNdMsg bytes.
func ndMsg(b []byte) ndHead {
	return ndHead{b[0], int(int32(binary.NativeEndian.Uint32(b[4:]))), binary.NativeEndian.Uint16(b[8:])}
}

// toldNeighbour is a neighbour as a message has it.
type toldNeighbour struct {
	ndHead
	addr   netip.Addr // not valid: it has none
	mac    hardware
	known  bool // mac is
	bridge int  // 0: none
}

func readNeighbour(m message) (n toldNeighbour, err error) {
	err = attributes(m.data, sizeofNdMsg, func(kind uint16, value []byte) {
		switch kind {
		case unix.NDA_DST:
			n.addr, _ = netip.AddrFromSlice(value)
		case unix.NDA_LLADDR:
			n.known = len(value) == len(n.mac)
			copy(n.mac[:], value)
		case unix.NDA_MASTER:
			n.bridge = number(value)
		}
	})
	if err == nil {
		n.ndHead = ndMsg(m.data)
	}
	return n, err
}

// takeNeighbour takes over where an address, or on a bridge a station, is.
func (t *table) takeNeighbour(m message) error {
	n, err := readNeighbour(m)
	if err != nil {
		return err
	}
	gone := m.kind == unix.RTM_DELNEIGH
	switch n.family {
	case unix.AF_BRIDGE:
		t.takeStation(n, gone)
		return nil
	case unix.AF_INET, unix.AF_INET6:
	default:
		return nil
	}
	if !n.addr.IsValid() || n.addr.IsLinkLocalUnicast() || n.addr.IsMulticast() || n.state&unix.NUD_NOARP != 0 {
		return nil
	}
	s := seat{n.link, n.addr}
	failed := n.state&unix.NUD_FAILED != 0
	switch {
	case gone:
		t.removeNeighbour(s)
	case failed || n.known:
		t.setNeighbour(s, neighbour{n.mac, failed})
	}
	return nil
}

func (t *table) takeStation(n toldNeighbour, gone bool) {
	if n.bridge == 0 || !n.known || n.state&unix.NUD_PERMANENT != 0 { // permanent: the port's own
		return
	}
	at := station{n.bridge, n.mac}
	switch {
	case !gone:
		t.setPort(at, n.link)
	case t.ports[at] == n.link:
		t.setPort(at, 0)
	}
}
