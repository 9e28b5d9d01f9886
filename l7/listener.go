package l7

import (
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// backlog of a listening socket; the kernel caps it at net.core.somaxconn.
const backlog = 65535

// listen returns a bound, listening socket and its address. reuse lets several
// sockets share the address (SO_REUSEPORT).
func listen(addr netip.AddrPort, reuse bool) (int, netip.AddrPort, error) {
	fail := func(fd int, what string, err error) (int, netip.AddrPort, error) {
		if fd >= 0 {
			unix.Close(fd)
		}
		return -1, addr, fmt.Errorf("listen on %s: %s: %w", addr, what, err)
	}
	family := unix.AF_INET
	if addr.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(-1, "socket", err)
	}
	options := []struct {
		name              string
		level, opt, value int
	}{
		{"SO_REUSEADDR", unix.SOL_SOCKET, unix.SO_REUSEADDR, 1},
		// Accepted connections inherit it.
		{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1},
	}
	if reuse {
		options = append(options, struct {
			name              string
			level, opt, value int
		}{"SO_REUSEPORT", unix.SOL_SOCKET, unix.SO_REUSEPORT, 1})
	}
	if family == unix.AF_INET6 {
		// [::] and 0.0.0.0 are separate addresses of the configuration.
		options = append(options, struct {
			name              string
			level, opt, value int
		}{"IPV6_V6ONLY", unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1})
	}
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, o.level, o.opt, o.value); err != nil {
			return fail(fd, o.name, err)
		}
	}
	if err := unix.Bind(fd, sockaddr(addr)); err != nil {
		return fail(fd, "bind", err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return fail(fd, "listen", err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return fail(fd, "getsockname", err)
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		addr = netip.AddrPortFrom(addr.Addr(), uint16(sa.Port))
	case *unix.SockaddrInet6:
		addr = netip.AddrPortFrom(addr.Addr(), uint16(sa.Port))
	}
	return fd, addr, nil
}

func sockaddr(addr netip.AddrPort) unix.Sockaddr {
	if addr.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(addr.Port()), Addr: addr.Addr().As16()}
}

// addrPort reads an address that the kernel wrote.
func addrPort(sa *unix.RawSockaddrAny) netip.AddrPort {
	switch sa.Addr.Family {
	case unix.AF_INET:
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom4(in.Addr), in.Port<<8|in.Port>>8)
	case unix.AF_INET6:
		in := (*unix.RawSockaddrInet6)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom16(in.Addr).Unmap(), in.Port<<8|in.Port>>8)
	}
	return netip.AddrPort{}
}
