package netwatch

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// told is a route as a message has it.
type told struct {
	hop
	to      netip.Addr // not valid: the default route
	table   int
	several bool // hops, which are not listed here
}

func readRoute(m message) (r told, err error) {
	err = attributes(m.data, unix.SizeofRtMsg, func(kind uint16, value []byte) {
		switch kind {
		case unix.RTA_DST:
			r.to, _ = netip.AddrFromSlice(value)
		case unix.RTA_OIF:
			r.link = number(value)
		case unix.RTA_GATEWAY:
			r.gateway, _ = netip.AddrFromSlice(value)
		case unix.RTA_PRIORITY:
			r.metric = uint32(number(value))
		case unix.RTA_TABLE:
			r.table = number(value)
		case unix.RTA_MULTIPATH, unix.RTA_VIA:
			r.several = true
		}
	})
	return r, err
}

// takeRoute takes over routes of the main table that lead somewhere.
func (t *table) takeRoute(m message) error {
	r, err := readRoute(m)
	if err != nil {
		return err
	}
	head := nl.DeserializeRtMsg(m.data)
	replace := m.kind == unix.RTM_NEWROUTE && m.flags&unix.NLM_F_REPLACE != 0
	if r.table != unix.RT_TABLE_MAIN || head.Type != unix.RTN_UNICAST && !replace || head.Flags&unix.RTM_F_CLONED != 0 {
		return nil
	}
	none := netip.IPv4Unspecified()
	switch head.Family {
	case unix.AF_INET:
	case unix.AF_INET6:
		none = netip.IPv6Unspecified()
	default:
		return nil
	}
	if !r.to.IsValid() {
		r.to = none
	}
	if r.to.IsLinkLocalUnicast() || r.to.IsMulticast() {
		return nil
	}
	if r.several && !r.gateway.IsValid() {
		r.gateway = none // some other node
	}
	to := netip.PrefixFrom(r.to, int(head.Dst_len))
	if !to.IsValid() {
		return fmt.Errorf("destination %s with %d bits", r.to, head.Dst_len)
	}
	switch {
	case m.kind == unix.RTM_DELROUTE:
		t.removeRoute(to, r.hop)
	case head.Type != unix.RTN_UNICAST: // a blackhole in the place of a route that led somewhere
		t.displace(to, r.metric)
	default:
		t.setRoute(to, r.hop, replace)
	}
	return nil
}
