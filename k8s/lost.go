package k8s

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/weirproxy/weir/l7/route"
)

// judged finds the clusters with endpoints that this node may know to be lost.
type judged map[netip.Addr]map[*cluster]bool

// set notes the addresses of c, in the place of those before.
func (j judged) set(c *cluster, addresses []netip.Addr) {
	if slices.Equal(c.judged, addresses) {
		return
	}
	for _, a := range c.judged {
		if delete(j[a], c); len(j[a]) == 0 {
			delete(j, a)
		}
	}
	for _, a := range addresses {
		if j[a] == nil {
			j[a] = make(map[*cluster]bool, 1)
		}
		j[a][c] = true
	}
	c.judged = addresses
}

// ApplyLost brings the clusters in step at once that have endpoints of these
// addresses, about which Options.Lost says something else than before. It does
// nothing before the first Apply.
func (t *Translator) ApplyLost(addresses []netip.Addr) Result {
	stale := make(map[*cluster]bool)
	for _, a := range addresses {
		for c := range t.from.judged[a] {
			stale[c] = true
		}
	}
	return t.follow(nil, slices.Collect(maps.Keys(stale)), nil, false)
}

// findLost marks those in list that this node knows to be cut off.
//
// What a slice newly says counts more than an older loss: an endpoint that was not
// listed before, or was not ready and is, may be another pod with the same address.
// Endpoints on other nodes are not for this one to judge; addresses are those of the
// rest.
func (c *cluster) findLost(list []state, from *surroundings) (addresses []netip.Addr) {
	excused := c.excused
	c.excused = nil
	if from.lost == nil {
		return nil
	}
	set := c.Endpoints()
	for n := range list {
		s := &list[n]
		e := &s.endpoint
		if e.Node != "" && from.node != "" && !e.Local {
			continue
		}
		addresses = append(addresses, e.Addr.Addr())
		loss := from.lost(e.Addr.Addr())
		if loss == 0 {
			continue
		}
		same := func(o *route.Endpoint) bool { return o.Addr == e.Addr }
		drained := slices.ContainsFunc(set.Draining, same)
		listed := drained || slices.ContainsFunc(set.Active, same) || slices.ContainsFunc(set.Lost, same)
		if loss > excused[e.Addr] && listed && !(drained && s.ready) {
			s.lost = true
			continue
		}
		if c.excused == nil {
			c.excused = make(map[netip.AddrPort]uint64)
		}
		c.excused[e.Addr] = loss
	}
	return addresses
}
