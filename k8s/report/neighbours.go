package report

import (
	"context"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// neighbours is what one agent sees of the Leases of all.
type neighbours struct {
	api    api
	config *Config
	log    *complaints
	own    string // name of this agent's
	seen   map[string]sighting
}

// sighting is the state of a Lease that did not change since at.
type sighting struct {
	version string
	at      time.Time
}

func newNeighbours(a api, c *Config, log *complaints, own string) *neighbours {
	return &neighbours{api: a, config: c, log: log, own: own, seen: make(map[string]sighting)}
}

// look returns the Leases of all agents that are there, this one's included.
//
// Whether one still renews is told by the monotonic clock. Only at first sight the
// time in the Lease decides, so that a new leader does not take those that are long
// gone for alive.
func (n *neighbours) look(ctx context.Context) ([]coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()
	list, err := n.api.leases(ctx, n.config.Namespace, presenceLabel+"="+n.config.Lease)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	seen := make(map[string]sighting, len(list))
	var there []coordinationv1.Lease
	for _, l := range list {
		s, known := n.seen[l.Name]
		switch {
		case !known:
			s = sighting{l.ResourceVersion, now.Add(-min(age(&l), absentAfter))}
		case s.version != l.ResourceVersion:
			s = sighting{l.ResourceVersion, now}
		}
		seen[l.Name] = s
		if since := now.Sub(s.at); since < absentAfter || l.Name == n.own {
			there = append(there, l)
		} else if since >= forgetAfter {
			n.forget(ctx, &l)
		}
	}
	n.seen = seen
	return there, nil
}

// age returns how long ago l was renewed, as the wall clock has it.
func age(l *coordinationv1.Lease) time.Duration {
	if l.Spec.RenewTime == nil {
		return forgetAfter
	}
	return max(0, time.Since(l.Spec.RenewTime.Time))
}

// forget deletes the Lease of an agent that is gone for good.
func (n *neighbours) forget(ctx context.Context, l *coordinationv1.Lease) {
	if err := n.api.deleteLease(ctx, l); err != nil {
		n.log.failed("delete the Lease of an agent that is gone", err)
		return
	}
	n.log.worked("delete the Lease of an agent that is gone")
}

// alone reports whether no other agent is there but those that are leaving.
func (n *neighbours) alone(ctx context.Context) bool {
	there, err := n.look(ctx)
	if err != nil {
		n.log.failed("list the Leases of the agents", err)
		return false // in doubt they serve
	}
	n.log.worked("list the Leases of the agents")
	for _, l := range there {
		if l.Name != n.own && l.Annotations[leavingKey] == "" {
			return false
		}
	}
	return true
}

// addresses returns those of all agents that are there.
func (n *neighbours) addresses(ctx context.Context) ([]string, error) {
	there, err := n.look(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, l := range there {
		for a := range strings.SplitSeq(l.Annotations[addressesKey], ",") {
			if CheckAddress(a) == nil {
				out = append(out, a)
			}
		}
	}
	return out, nil
}
