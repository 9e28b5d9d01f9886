package route

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func list(ports ...uint16) (out []Endpoint) {
	for _, p := range ports {
		out = append(out, Endpoint{Addr: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), p)})
	}
	return out
}

// text shows the ports of a set: its tiers, those that drain, those that are lost.
func text(s *EndpointSet) string {
	show := func(list []*Endpoint) string {
		var out []string
		for _, e := range list {
			out = append(out, fmt.Sprint(e.Addr.Port()))
		}
		return strings.Join(out, " ")
	}
	var tiers []string
	start := 0
	for _, end := range s.Tiers {
		tiers = append(tiers, show(s.Active[start:end]))
		start = end
	}
	if start != len(s.Active) {
		tiers = append(tiers, "without tier: "+show(s.Active[start:]))
	}
	return strings.Join(tiers, " | ") + "; " + show(s.Draining) + "; " + show(s.Lost)
}

func TestSetEndpoints(t *testing.T) {
	c := NewCluster("t/a:80", 1)
	for _, step := range []struct {
		name    string
		listing Listing
		want    string
		changed bool
	}{
		{"nothing", Listing{}, "; ; ", false},
		{"sorted, once each", Listing{Tiers: [][]Endpoint{list(3, 1, 3, 2)}}, "1 2 3; ; ", true},
		{"the same", Listing{Tiers: [][]Endpoint{nil, list(1, 2, 3), nil}}, "1 2 3; ; ", false},
		{"tiers only", Listing{Tiers: [][]Endpoint{list(3), nil, list(2, 1)}}, "3 | 1 2; ; ", true},
		{"other tiers, same order", Listing{Tiers: [][]Endpoint{list(3), list(1), list(2)}}, "3 | 1 | 2; ; ", true},
		{"a tier of known ones", Listing{Tiers: [][]Endpoint{list(3, 1), list(1), list(2)}}, "1 3 | 2; ; ", true},
		{"in several lists", Listing{Tiers: [][]Endpoint{list(1)}, Draining: list(1, 2), Lost: list(1, 2, 4, 3)}, "1; 2; 3 4", true},
		{"the same lost", Listing{Tiers: [][]Endpoint{list(1)}, Draining: list(2), Lost: list(4, 3)}, "1; 2; 3 4", false},
		{"found", Listing{Tiers: [][]Endpoint{list(1, 3)}, Draining: list(2), Lost: list(4)}, "1 3; 2; 4", true},
	} {
		before := c.Endpoints()
		if got := c.SetEndpoints(step.listing); got != step.changed {
			t.Errorf("%s: changed = %v, want %v", step.name, got, step.changed)
		}
		if got := text(c.Endpoints()); got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
		if got := c.Endpoints() != before; got != step.changed {
			t.Errorf("%s: another set: %v, want %v", step.name, got, step.changed)
		}
	}
}
