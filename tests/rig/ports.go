package rig

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
)

// FreeAddr returns an address on ip whose TCP port nobody listens on now. The
// port lies under the kernel's ephemeral range (32768 and up), so an outgoing
// connection can't take it before its user binds it.
func FreeAddr(ip netip.Addr) (netip.AddrPort, error) {
	for range 200 {
		addr := netip.AddrPortFrom(ip, uint16(18000+rand.IntN(14000)))
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(addr))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return netip.AddrPort{}, fmt.Errorf("close probe of %s: %w", addr, err)
		}
		return addr, nil
	}
	return netip.AddrPort{}, fmt.Errorf("no free port on %s", ip)
}

// Loopback is 127.0.0.1.
var Loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})
