package k8s

import (
	"net/netip"
	"slices"

	"github.com/weirproxy/weir/l7/route"
)

// ApplyLost brings clusters in step at once with what Options.Lost says of the
// addresses. It looks through the endpoints of all clusters, and refreshes those
// that have one of them. It does nothing before the first Apply.
func (t *Translator) ApplyLost(addresses []netip.Addr) Result {
	asked := make(map[netip.Addr]bool, len(addresses))
	for _, a := range addresses {
		asked[a] = true
	}
	has := func(e *route.Endpoint) bool { return asked[e.Addr.Addr()] }
	var stale []*cluster
	for _, c := range t.clusters.byName {
		set := c.Endpoints()
		if slices.ContainsFunc(set.Active, has) || slices.ContainsFunc(set.Draining, has) || slices.ContainsFunc(set.Lost, has) {
			stale = append(stale, c)
		}
	}
	return t.follow(nil, stale, nil, false)
}

// findLost marks those in list that this node knows to be cut off.
//
// What a slice newly says counts more than an older loss: an endpoint that was not
// listed before, or was not ready and is, may be another pod with the same address.
// Endpoints on other nodes are not for this one to judge.
func (c *cluster) findLost(list []state, from *surroundings) {
	excused := c.excused
	c.excused = nil
	if from.lost == nil {
		return
	}
	set := c.Endpoints()
	for n := range list {
		s := &list[n]
		e := &s.endpoint
		if e.Node != "" && from.node != "" && !e.Local {
			continue
		}
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
}
