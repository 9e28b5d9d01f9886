package agent

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/weirproxy/weir/k8s"
)

// lookupTime is how long a name server may take to tell where the API server is.
const lookupTime = 2 * time.Second

// reserve sets what no endpoint may be: the API server at host, a URL, and this
// node's own services. An error is about what could not be found out; the rest is set.
func (c Config) reserve(o *k8s.Options, host string) error {
	list, err := net.InterfaceAddrs()
	if err != nil {
		err = fmt.Errorf("this node's addresses: %w", err)
	}
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				o.NodeAddresses = append(o.NodeAddresses, addr.Unmap())
			}
		}
	}
	for _, a := range append(slices.Clone(c.HTTPAddresses), c.AdminAddress) {
		if a.Port() != 0 {
			o.NodePorts = append(o.NodePorts, a.Port())
		}
	}
	servers, apiErr := resolve(host)
	o.APIServers = servers
	if err == nil {
		err = apiErr
	}
	return err
}

// resolve returns the addresses of a URL's host.
func resolve(host string) ([]netip.AddrPort, error) {
	u, err := url.Parse(host)
	if err != nil {
		return nil, fmt.Errorf("the API server's address: %w", err)
	}
	port := uint64(443)
	if u.Port() != "" {
		if port, err = strconv.ParseUint(u.Port(), 10, 16); err != nil {
			return nil, fmt.Errorf("the API server's address: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname()) // an address is its own
	if err != nil {
		return nil, fmt.Errorf("the API server's address: %w", err)
	}
	var out []netip.AddrPort
	for _, a := range found {
		out = append(out, netip.AddrPortFrom(a.Unmap(), uint16(port)))
	}
	return out, nil
}
