package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The types here parse the values of flags and environment variables straight
// into a configuration. Each error says what is allowed; the flag package adds
// the flag and the value.

// choice is one of a few words.
type choice struct {
	to    *string
	words []string
}

func (c choice) Set(s string) error {
	if !slices.Contains(c.words, s) {
		return fmt.Errorf("want %s", either(c.words))
	}
	*c.to = s
	return nil
}

func (c choice) String() string { return text(c.to) }

// text returns what p points to; the flag package prints zero values too.
func text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// either joins words as "a, b or c".
func either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// number is an integer within bounds. zero, if not "", is a word for 0.
type number struct {
	to       *int
	min, max int
	zero     string
}

func (n number) Set(s string) error {
	if n.zero != "" && s == n.zero {
		*n.to = 0
		return nil
	}
	v, err := strconv.Atoi(s)
	if err != nil || v < n.min || v > n.max {
		want := fmt.Sprintf("want a whole number from %d to %d", n.min, n.max)
		if n.zero != "" {
			want += ", or " + n.zero
		}
		return fmt.Errorf("%s", want)
	}
	*n.to = v
	return nil
}

func (n number) String() string {
	switch {
	case n.to == nil:
		return ""
	case *n.to == 0 && n.zero != "":
		return n.zero
	}
	return strconv.Itoa(*n.to)
}

// size is a number of bytes within bounds, with an optional suffix k or m (binary).
type size struct {
	to       *int
	min, max int
}

func (z size) Set(s string) error {
	digits, unit := s, 1
	if n := len(s) - 1; n > 0 {
		switch s[n] {
		case 'k', 'K':
			digits, unit = s[:n], 1<<10
		case 'm', 'M':
			digits, unit = s[:n], 1<<20
		}
	}
	v, err := strconv.Atoi(digits)
	if err != nil || v < 0 || v > z.max/unit || v*unit < z.min {
		return fmt.Errorf("want bytes from %s to %s, as 32768 or 32k", byteText(z.min), byteText(z.max))
	}
	*z.to = v * unit
	return nil
}

func (z size) String() string {
	if z.to == nil {
		return ""
	}
	return byteText(*z.to)
}

// byteText prints a size as the flags take it.
func byteText(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return strconv.Itoa(n>>20) + "m"
	case n >= 1<<10 && n%(1<<10) == 0:
		return strconv.Itoa(n>>10) + "k"
	}
	return strconv.Itoa(n)
}

// span is a duration within bounds.
type span struct {
	to       *time.Duration
	min, max time.Duration
}

func (p span) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil || v < p.min || v > p.max {
		return fmt.Errorf("want a duration with its unit from %s to %s, as 500ms or 1m30s", short(p.min), short(p.max))
	}
	*p.to = v
	return nil
}

func (p span) String() string {
	if p.to == nil {
		return ""
	}
	return short(*p.to)
}

// short prints 1h0m0s as 1h.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// name is a word that must not be empty, with a check of its own.
type name struct {
	to    *string
	check func(string) error // nil: any
}

func (n name) Set(s string) error {
	if s == "" {
		return fmt.Errorf("want a value")
	}
	if n.check != nil {
		if err := n.check(s); err != nil {
			return err
		}
	}
	*n.to = s
	return nil
}

func (n name) String() string { return text(n.to) }

// namespacedName checks "namespace/name".
func namespacedName(s string) error {
	ns, name, ok := strings.Cut(s, "/")
	if !ok || ns == "" || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("want NAMESPACE/NAME")
	}
	return nil
}

// address is one address and port.
type address struct{ to *netip.AddrPort }

func (a address) Set(s string) error {
	v, err := netip.ParseAddrPort(s)
	if err != nil {
		return fmt.Errorf("want an IP address and a port, as 127.0.0.1:9901 or [::1]:9901")
	}
	*a.to = v
	return nil
}

func (a address) String() string {
	if a.to == nil || !a.to.IsValid() {
		return ""
	}
	return a.to.String()
}
