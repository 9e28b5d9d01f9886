package main

import (
	"flag"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/weirproxy/weir/agent"
)

// list is a flag that may be given several times; in the environment variable
// commas separate the values. What is given replaces the default, and what the
// command line gives replaces what the environment does.
type list struct {
	cli.GenericFlag
	value *values
}

// values collects the values of a list.
type values struct {
	parse  func(string) error // adds one value
	reset  func()             // removes all
	given  func() []string    // for the help text
	commas bool               // one value may hold several
	stale  bool               // the next value replaces all before it
}

func (v *values) Set(s string) error {
	if v.stale {
		v.reset()
		v.stale = false
	}
	parts := []string{s}
	if v.commas {
		parts = strings.Split(s, ",")
	}
	for _, part := range parts {
		if err := v.parse(strings.TrimSpace(part)); err != nil {
			return err
		}
	}
	return nil
}

func (v *values) String() string {
	if v.given == nil {
		return ""
	}
	return strings.Join(v.given(), ",")
}

// newList makes a list flag around v.
func newList(f cli.GenericFlag, v *values) *list {
	v.stale = true
	f.Value = v
	return &list{f, v}
}

// addresses parses into to. A port alone means all addresses of both families.
func addresses(to *[]netip.AddrPort) *values {
	return &values{
		commas: true,
		reset:  func() { *to = nil },
		given: func() []string {
			var out []string
			for _, a := range *to {
				out = append(out, a.String())
			}
			return out
		},
		parse: func(s string) error {
			more, err := parseListen(s)
			for _, a := range more {
				if a.Port() != 0 && slices.Contains(*to, a) {
					return fmt.Errorf("address %s is given twice", a)
				}
			}
			*to = append(*to, more...)
			return err
		},
	}
}

// parseListen reads "A:P" or ":P", which stands for both families.
func parseListen(s string) ([]netip.AddrPort, error) {
	if strings.HasPrefix(s, ":") {
		a, err := netip.ParseAddrPort("0.0.0.0" + s)
		if err == nil {
			return both(a.Port()), nil
		}
	}
	a, err := netip.ParseAddrPort(s)
	if err != nil || a.Addr().Zone() != "" {
		return nil, fmt.Errorf("want an IP address and a port, as 0.0.0.0:80 or [::]:80, or :80 for both")
	}
	return []netip.AddrPort{netip.AddrPortFrom(a.Addr().Unmap(), a.Port())}, nil
}

// prefixes parses networks in CIDR form, or single addresses, into to.
func prefixes(to *[]netip.Prefix) *values {
	return &values{
		commas: true,
		reset:  func() { *to = nil },
		parse: func(s string) error {
			if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
				a = a.Unmap()
				*to = append(*to, netip.PrefixFrom(a, a.BitLen()))
				return nil
			}
			p, err := netip.ParsePrefix(s)
			switch {
			case err != nil:
				return fmt.Errorf("want a network as 10.0.0.0/8 or fd00::/8, or an IP address")
			case p != p.Masked():
				return fmt.Errorf("%s has bits behind its prefix; want %s or a single address", p, p.Masked())
			}
			*to = append(*to, p)
			return nil
		},
	}
}

// words parses names into to.
func words(to *[]string) *values {
	return &values{
		commas: true,
		reset:  func() { *to = nil },
		given:  func() []string { return *to },
		parse: func(s string) error {
			if s == "" {
				return fmt.Errorf("want a value")
			}
			*to = append(*to, s)
			return nil
		},
	}
}

// published parses addresses for the status of Ingresses into to.
func published(to *[]string) *values {
	v := words(to)
	add := v.parse
	v.parse = func(s string) error {
		if agent.CheckAddress(s) != nil {
			return fmt.Errorf("want an IP address or a host name")
		}
		return add(s)
	}
	return v
}

// fields parses header fields into to; they may hold commas.
func fields(to *[]string) *values {
	return &values{
		reset: func() { *to = nil },
		parse: func(s string) error {
			if name, _, ok := strings.Cut(s, ":"); !ok || name == "" {
				return fmt.Errorf("want Name: value")
			}
			*to = append(*to, s)
			return nil
		},
	}
}

// Apply adds the flag to set; what the environment gave is then replaced by the
// first value on the command line.
func (l *list) Apply(set *flag.FlagSet) error {
	err := l.GenericFlag.Apply(set)
	l.value.stale = true
	return err
}

// IsSliceFlag makes the help text say that the flag may be repeated.
func (l *list) IsSliceFlag() bool { return true }

// String is the flag's line of the help text.
func (l *list) String() string { return cli.FlagStringer(l) }
