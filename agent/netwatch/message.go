package netwatch

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// message is one of rtnetlink, told or asked for.
type message struct {
	kind  uint16 // RTM_NEWLINK and so on
	flags uint16
	data  []byte
}

// take brings t in step with a message. What it does not concern is left out.
func (t *table) take(m message) error {
	var err error
	switch m.kind {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		err = t.takeLink(m)
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		err = t.takeAddress(m)
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		err = t.takeRoute(m)
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		err = t.takeNeighbour(m)
	}
	if err != nil {
		return fmt.Errorf("message %d of rtnetlink: %w", m.kind, err)
	}
	return nil
}

// attributes calls each with those that follow the first size bytes of a message.
func attributes(b []byte, size int, each func(kind uint16, value []byte)) error {
	if len(b) < size {
		return fmt.Errorf("%d bytes, want %d at least", len(b), size)
	}
	list, err := nl.ParseRouteAttr(b[size:])
	if err != nil {
		return err
	}
	for _, a := range list {
		each(a.Attr.Type&^unix.NLA_F_NESTED, a.Value)
	}
	return nil
}

// number returns the value of an attribute of four bytes, 0 if it has others.
func number(b []byte) int {
	if len(b) != 4 {
		return 0
	}
	return int(binary.NativeEndian.Uint32(b))
}

// text returns the value of an attribute that ends with a zero.
func text(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

func (t *table) takeLink(m message) error {
	var l link
	err := attributes(m.data, unix.SizeofIfInfomsg, func(kind uint16, value []byte) {
		switch kind {
		case unix.IFLA_IFNAME:
			l.name = text(value)
		case unix.IFLA_MASTER:
			l.master = number(value)
		case unix.IFLA_LINKINFO:
			// Its own errors mean a kind that is not known.
			_ = attributes(value, 0, func(kind uint16, value []byte) {
				if kind == unix.IFLA_INFO_KIND {
					l.kind = text(value)
				}
			})
		}
	})
	if err != nil {
		return err
	}
	head := nl.DeserializeIfInfomsg(m.data)
	if head.Family == unix.AF_BRIDGE {
		return nil // about a port: an RTM_DELLINK says that it left its bridge
	}
	l.index = int(head.Index)
	l.enable = head.Flags&unix.IFF_UP != 0
	l.up = l.enable && head.Flags&unix.IFF_LOWER_UP != 0
	if m.kind == unix.RTM_DELLINK {
		t.removeLink(l.index)
	} else {
		t.setLink(l)
	}
	return nil
}

func (t *table) takeAddress(m message) error {
	var peer, local netip.Addr
	err := attributes(m.data, unix.SizeofIfAddrmsg, func(kind uint16, value []byte) {
		switch kind {
		case unix.IFA_LOCAL:
			local, _ = netip.AddrFromSlice(value)
		case unix.IFA_ADDRESS: // the other end of a point-to-point link, else the same
			peer, _ = netip.AddrFromSlice(value)
		}
	})
	if err != nil {
		return err
	}
	if !local.IsValid() {
		local = peer
	}
	a := owned{local, int(nl.DeserializeIfAddrmsg(m.data).Index)}
	if m.kind == unix.RTM_DELADDR {
		delete(t.own, a)
	} else if local.IsValid() {
		t.own[a] = true
	}
	return nil
}
