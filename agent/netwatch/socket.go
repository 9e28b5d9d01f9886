package netwatch

import (
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// groups are what the kernel is to tell of, all on one socket: only so the order is
// kept, and a link that went is not mistaken for one that came.
var groups = []uint{
	unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH,
	unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE,
	unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE,
}

// bufferBytes is what may wait to be read: about 4,000 messages. More is an
// overflow, and everything is read anew.
const bufferBytes = 4 << 20

// socket hears what changes. Its owner closes it.
type socket struct{ *nl.NetlinkSocket }

func openSocket() (socket, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, groups...)
	if err != nil {
		return socket{}, fmt.Errorf("subscribe to rtnetlink: %w", err)
	}
	// More than net.core.rmem_max needs CAP_NET_ADMIN; what is allowed will do.
	if s.SetReceiveBufferSize(bufferBytes, true) != nil {
		if err := s.SetReceiveBufferSize(bufferBytes, false); err != nil {
			s.Close()
			return socket{}, fmt.Errorf("receive buffer of rtnetlink: %w", err)
		}
	}
	return socket{s}, nil
}

// errOverflow: the kernel had more to tell than the buffer holds.
var errOverflow = errors.New("the buffer of rtnetlink overflowed")

// receive returns what is told next; nothing if until comes before that. Zero waits
// for ever.
func (s socket) receive(until time.Time) ([]message, error) {
	wait := time.Duration(0)
	if !until.IsZero() {
		wait = max(time.Until(until), time.Millisecond)
	}
	limit := unix.NsecToTimeval(wait.Nanoseconds())
	if err := s.SetReceiveTimeout(&limit); err != nil {
		return nil, err
	}
	list, from, err := s.Receive()
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return nil, nil
	case errors.Is(err, unix.ENOBUFS):
		return nil, errOverflow
	case err != nil:
		return nil, fmt.Errorf("read rtnetlink: %w", err)
	case from.Pid != nl.PidKernel:
		return nil, nil // another process may send here; it is no news
	}
	out := make([]message, len(list))
	for n, m := range list {
		out[n] = message{m.Header.Type, m.Header.Flags, m.Data}
	}
	return out, nil
}

// interruptedMax is how often a list is asked for again that changed meanwhile.
// What it lacks after that is told by the socket.
const interruptedMax = 5

// read returns a table of what there is now.
func read() (*table, error) {
	t := newTable()
	for _, list := range []struct {
		what      string
		ask, kind uint16
		head      nl.NetlinkRequestData
	}{
		{"links", unix.RTM_GETLINK, unix.RTM_NEWLINK, nl.NewIfInfomsg(unix.AF_UNSPEC)},
		{"addresses", unix.RTM_GETADDR, unix.RTM_NEWADDR, nl.NewIfAddrmsg(unix.AF_UNSPEC)},
		{"routes", unix.RTM_GETROUTE, unix.RTM_NEWROUTE, &nl.RtMsg{}},
		{"neighbours", unix.RTM_GETNEIGH, unix.RTM_NEWNEIGH, &netlink.Ndmsg{}},
		{"stations of bridges", unix.RTM_GETNEIGH, unix.RTM_NEWNEIGH, &netlink.Ndmsg{Family: unix.AF_BRIDGE}},
	} {
		all, err := dump(list.ask, list.kind, list.head)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", list.what, err)
		}
		for _, data := range all {
			if err := t.take(message{kind: list.kind, data: data}); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

func dump(ask, kind uint16, head nl.NetlinkRequestData) (all [][]byte, err error) {
	for range interruptedMax {
		request := nl.NewNetlinkRequest(int(ask), unix.NLM_F_DUMP)
		request.AddData(head)
		if all, err = request.Execute(unix.NETLINK_ROUTE, kind); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return all, nil
}
