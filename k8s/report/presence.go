package report

import (
	"context"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Each agent keeps a small Lease of its own, so that the leader knows, without the
// right to read Pods or Nodes, who is there and at which addresses.
const (
	// presenceLabel holds the name of the Lease of the election, for the selector.
	presenceLabel = "weir.io/election"
	// addressesKey is the annotation with the addresses, separated by commas.
	addressesKey = "weir.io/addresses"
	// leavingKey is the annotation of one that ends: it does not count as there for
	// the question who is the last, but its addresses stay until it is absent, as
	// an agent that is replaced is back before that.
	leavingKey = "weir.io/leaving"

	presenceEvery   = 30 * time.Second
	presenceTimeout = 5 * time.Second
	// absentAfter is when an agent that does not renew its Lease counts as gone.
	absentAfter = 90 * time.Second
	// forgetAfter is when the Lease of one that is gone is deleted.
	forgetAfter = time.Hour
	// nodeAddressAge is for how long the addresses of the own Node are believed.
	nodeAddressAge = 10 * time.Minute
)

// presence keeps the Lease of this agent.
type presence struct {
	api    api
	config *Config
	log    *complaints
	place  string // the node, or if that is unknown the identity

	lease *coordinationv1.Lease // as it was written last

	addresses []string
	readAt    time.Time // of addresses; zero: never
}

func newPresence(a api, c *Config, log *complaints) *presence {
	p := &presence{api: a, config: c, log: log, place: c.Publish.NodeName}
	if p.place == "" {
		p.place = c.Identity
	}
	return p
}

// run tells that the agent is there until ctx ends, then, if alive does not end,
// that it leaves. told is called with the addresses whenever they were looked up.
func (p *presence) run(ctx, alive context.Context, told func([]string)) {
	failures := 0
	for ctx.Err() == nil {
		err := p.tell(ctx, false, told)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			failures++
			p.log.failed("keep the Lease of this agent", err)
			pause(ctx, backoff(failures, lookFirst, lookMost))
		default:
			failures = 0
			p.log.worked("keep the Lease of this agent")
			pause(ctx, backoff(1, presenceEvery, presenceEvery))
		}
	}
	if p.lease == nil {
		return
	}
	if err := p.tell(alive, true, told); err != nil {
		p.log.failed("tell that this agent leaves", err)
	}
}

// tell writes the Lease.
func (p *presence) tell(ctx context.Context, leaving bool, told func([]string)) error {
	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()
	if !leaving && p.config.Publish.nodes() {
		if err := p.readNode(ctx); err != nil {
			p.log.failed("read the addresses of Node "+p.config.Publish.NodeName, err)
		}
		told(p.addresses)
	}
	if p.lease == nil {
		l, err := p.api.createLease(ctx, p.fill(nil, leaving))
		if err == nil || !apierrors.IsAlreadyExists(err) {
			p.keep(l, err)
			return err
		}
		if err = p.read(ctx); err != nil {
			return err
		}
	}
	l, err := p.api.updateLease(ctx, p.fill(p.lease, leaving))
	if apierrors.IsConflict(err) { // that of an agent before this one on the node
		if err = p.read(ctx); err != nil {
			return err
		}
		l, err = p.api.updateLease(ctx, p.fill(p.lease, leaving))
	}
	p.keep(l, err)
	return err
}

func (p *presence) read(ctx context.Context) error {
	l, err := p.api.lease(ctx, types.NamespacedName{Namespace: p.config.Namespace, Name: p.name()}, false)
	p.keep(l, err)
	return err
}

// keep remembers what was read or written. One that is not there is to be created.
func (p *presence) keep(l *coordinationv1.Lease, err error) {
	switch {
	case err == nil:
		p.lease = l
	case apierrors.IsNotFound(err):
		p.lease = nil
	}
}

// fill returns what the Lease is to be, made from the one that is there, if any.
func (p *presence) fill(l *coordinationv1.Lease, leaving bool) *coordinationv1.Lease {
	if l == nil {
		l = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: p.config.Namespace, Name: p.name()}}
	}
	l = l.DeepCopy()
	metav1.SetMetaDataLabel(&l.ObjectMeta, presenceLabel, p.config.Lease)
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, addressesKey, strings.Join(p.addresses, ","))
	delete(l.Annotations, leavingKey)
	if leaving {
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, leavingKey, "true")
	}
	seconds, now := int32(absentAfter/time.Second), metav1.NowMicro()
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &p.place, &seconds, &now
	return l
}

// name returns that of the Lease.
func (p *presence) name() string { return objectName(p.config.Lease+"."+p.place, "") }

// readNode looks up the addresses of the own Node if they are old.
func (p *presence) readNode(ctx context.Context) error {
	if !p.readAt.IsZero() && time.Since(p.readAt) < nodeAddressAge {
		return nil
	}
	if p.config.Publish.NodeName == "" {
		return errNoNode
	}
	n, err := p.api.node(ctx, p.config.Publish.NodeName)
	if err != nil {
		return err
	}
	p.log.worked("read the addresses of Node " + p.config.Publish.NodeName)
	p.addresses, p.readAt = nodeAddresses(n), time.Now()
	return nil
}

// nodeAddresses returns the external addresses of n, or if there are none the
// internal ones.
func nodeAddresses(n *corev1.Node) []string {
	var external, internal []string
	for _, a := range n.Status.Addresses {
		switch {
		case CheckAddress(a.Address) != nil:
		case a.Type == corev1.NodeExternalIP:
			external = append(external, a.Address)
		case a.Type == corev1.NodeInternalIP:
			internal = append(internal, a.Address)
		}
	}
	if len(external) > 0 {
		return external
	}
	return internal
}
