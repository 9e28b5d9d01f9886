package report

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

var errDown = errors.New("connection refused")

// cluster is an API server in memory, and every agent's view of it: what is
// written is seen at once. It keeps to resource versions, UIDs and field managers.
type cluster struct {
	mu        sync.Mutex
	version   int
	objLeases map[types.NamespacedName]*coordinationv1.Lease
	ingresses map[types.NamespacedName]*networkingv1.Ingress
	events    map[types.NamespacedName]*eventsv1.Event
	services  map[types.NamespacedName]*corev1.Service
	nodes     map[string]*corev1.Node
	watches   []*watch.FakeWatcher

	calls map[string]int // by verb and resource
	// refuse, if not nil, may answer a call with an error before it is looked at.
	refuse func(call string) error
	// changed is called after a status was written, without the lock.
	changed func(types.NamespacedName)
	managed map[types.NamespacedName]string // who wrote the status last
}

func newCluster() *cluster {
	return &cluster{
		objLeases: make(map[types.NamespacedName]*coordinationv1.Lease),
		ingresses: make(map[types.NamespacedName]*networkingv1.Ingress),
		events:    make(map[types.NamespacedName]*eventsv1.Event),
		services:  make(map[types.NamespacedName]*corev1.Service),
		nodes:     make(map[string]*corev1.Node),
		calls:     make(map[string]int),
		managed:   make(map[types.NamespacedName]string),
	}
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// begin counts a call and locks; the error is that of the call.
func (c *cluster) begin(ctx context.Context, call string) error {
	c.mu.Lock()
	c.calls[call]++
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.refuse != nil {
		return c.refuse(call)
	}
	return nil
}

func (c *cluster) next() string {
	c.version++
	return strconv.Itoa(c.version)
}

func of(resource string) schema.GroupResource { return schema.GroupResource{Resource: resource} }

func (c *cluster) lease(ctx context.Context, key types.NamespacedName, _ bool) (*coordinationv1.Lease, error) {
	err := c.begin(ctx, "get leases")
	defer c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if l := c.objLeases[key]; l != nil {
		return l.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(of("leases"), key.Name)
}

func (c *cluster) leases(ctx context.Context, namespace, selector string) ([]coordinationv1.Lease, error) {
	err := c.begin(ctx, "list leases")
	defer c.mu.Unlock()
	label, value, _ := strings.Cut(selector, "=")
	var out []coordinationv1.Lease
	for key, l := range c.objLeases {
		if key.Namespace == namespace && l.Labels[label] == value {
			out = append(out, *l.DeepCopy())
		}
	}
	return out, err
}

func (c *cluster) createLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	err := c.begin(ctx, "create leases")
	defer c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if c.objLeases[keyOf(l)] != nil {
		return nil, apierrors.NewAlreadyExists(of("leases"), l.Name)
	}
	return c.putLease(l), nil
}

func (c *cluster) putLease(l *coordinationv1.Lease) *coordinationv1.Lease {
	l = l.DeepCopy()
	l.ResourceVersion = c.next()
	c.objLeases[keyOf(l)] = l
	return l.DeepCopy()
}

func (c *cluster) updateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	err := c.begin(ctx, "update leases")
	defer c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	switch there := c.objLeases[keyOf(l)]; {
	case there == nil:
		return nil, apierrors.NewNotFound(of("leases"), l.Name)
	case there.ResourceVersion != l.ResourceVersion:
		return nil, apierrors.NewConflict(of("leases"), l.Name, errors.New("changed"))
	}
	return c.putLease(l), nil
}

func (c *cluster) deleteLease(ctx context.Context, l *coordinationv1.Lease) error {
	err := c.begin(ctx, "delete leases")
	defer c.mu.Unlock()
	if there := c.objLeases[keyOf(l)]; err == nil && there != nil && there.ResourceVersion != l.ResourceVersion {
		err = apierrors.NewConflict(of("leases"), l.Name, errors.New("changed"))
	}
	if err == nil {
		delete(c.objLeases, keyOf(l))
	}
	return err
}

func (c *cluster) ingress(ctx context.Context, key types.NamespacedName) (*networkingv1.Ingress, error) {
	err := c.begin(ctx, "get ingresses")
	defer c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	i := c.ingresses[key]
	if i == nil {
		return nil, apierrors.NewNotFound(of("ingresses"), key.Name)
	}
	i = i.DeepCopy()
	if by := c.managed[key]; by != "" {
		i.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: by, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status",
			FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:loadBalancer":{"f:ingress":{}}}}`)}}
	}
	return i, nil
}

func (c *cluster) patchStatus(ctx context.Context, key types.NamespacedName, manager string, patch []byte) error {
	err := c.begin(ctx, "patch ingresses/status")
	if err == nil {
		err = c.applyStatus(key, manager, patch)
	}
	c.mu.Unlock()
	if err == nil && c.changed != nil {
		c.changed(key)
	}
	return err
}

func (c *cluster) applyStatus(key types.NamespacedName, manager string, patch []byte) error {
	var p struct {
		Metadata struct {
			UID             types.UID
			ResourceVersion string
		}
		Status networkingv1.IngressStatus
	}
	if err := json.Unmarshal(patch, &p); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	i := c.ingresses[key]
	switch {
	case i == nil:
		return apierrors.NewNotFound(of("ingresses"), key.Name)
	case p.Metadata.UID != i.UID: // as the API server has it
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Ingress"}, key.Name, nil)
	case p.Metadata.ResourceVersion != "" && p.Metadata.ResourceVersion != i.ResourceVersion:
		return apierrors.NewConflict(of("ingresses"), key.Name, errors.New("changed"))
	}
	i = i.DeepCopy()
	i.Status.LoadBalancer.Ingress = p.Status.LoadBalancer.Ingress
	i.ResourceVersion = c.next()
	c.ingresses[key], c.managed[key] = i, manager
	return nil
}

func (c *cluster) createEvent(ctx context.Context, e *eventsv1.Event) error {
	err := c.begin(ctx, "create events")
	defer c.mu.Unlock()
	if err != nil {
		return err
	}
	if c.events[keyOf(e)] != nil {
		return apierrors.NewAlreadyExists(of("events"), e.Name)
	}
	c.events[keyOf(e)] = e.DeepCopy()
	return nil
}

func (c *cluster) patchEvent(ctx context.Context, key types.NamespacedName, patch []byte) (*eventsv1.Event, error) {
	err := c.begin(ctx, "patch events")
	defer c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	e := c.events[key]
	if e == nil {
		return nil, apierrors.NewNotFound(of("events"), key.Name)
	}
	e = e.DeepCopy()
	if err := json.Unmarshal(patch, e); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	c.events[key] = e
	return e.DeepCopy(), nil
}

func (c *cluster) node(ctx context.Context, name string) (*corev1.Node, error) {
	err := c.begin(ctx, "get nodes")
	defer c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if n := c.nodes[name]; n != nil {
		return n.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(of("nodes"), name)
}

func (c *cluster) service(ctx context.Context, key types.NamespacedName) (*corev1.ServiceList, error) {
	err := c.begin(ctx, "list services")
	defer c.mu.Unlock()
	out := new(corev1.ServiceList)
	if s := c.services[key]; s != nil {
		out.Items = append(out.Items, *s.DeepCopy())
	}
	return out, err
}

func (c *cluster) watchService(ctx context.Context, _ types.NamespacedName, _ string) (watch.Interface, error) {
	err := c.begin(ctx, "watch services")
	defer c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	w := watch.NewFakeWithChanSize(10, false)
	c.watches = append(c.watches, w)
	return w, nil
}

// The methods of a View.

func (c *cluster) Ingress(key types.NamespacedName) (networkingv1.IngressLoadBalancerStatus, corev1.ObjectReference, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.ingresses[key]
	if i == nil {
		return networkingv1.IngressLoadBalancerStatus{}, corev1.ObjectReference{}, false
	}
	return *i.Status.LoadBalancer.DeepCopy(), reference("Ingress", i), true
}

func reference(kind string, o metav1.Object) corev1.ObjectReference {
	return corev1.ObjectReference{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}
}

func (c *cluster) Ingresses() []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []types.NamespacedName
	for key := range c.ingresses {
		out = append(out, key)
	}
	return out
}

func (c *cluster) Reference(kind, namespace, name string) (corev1.ObjectReference, bool) {
	if kind == "IngressClass" && name == "weir" {
		return corev1.ObjectReference{Kind: kind, Name: name, UID: "class"}, true
	}
	_, ref, ok := c.Ingress(types.NamespacedName{Namespace: namespace, Name: name})
	return ref, ok && kind == "Ingress"
}

// What tests do to the cluster.

// put makes an Ingress, or a new one of the same name, with a status that manager
// wrote.
func (c *cluster) put(key types.NamespacedName, manager string, addresses ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	i.ResourceVersion = c.next()
	i.UID = types.UID("uid-" + i.ResourceVersion)
	i.Status.LoadBalancer.Ingress = balancerEntries(addresses)
	c.ingresses[key], c.managed[key] = i, manager
}

// overwrite lets manager write a status.
func (c *cluster) overwrite(key types.NamespacedName, manager string, addresses ...string) {
	c.mu.Lock()
	i := c.ingresses[key].DeepCopy()
	i.Status.LoadBalancer.Ingress = balancerEntries(addresses)
	i.ResourceVersion = c.next()
	c.ingresses[key], c.managed[key] = i, manager
	c.mu.Unlock()
	if c.changed != nil {
		c.changed(key)
	}
}

// setRefuse sets what refuses calls from now on; nil: nothing.
func (c *cluster) setRefuse(f func(call string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = f
}

func (c *cluster) count(call string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[call]
}

// status returns the addresses in the status of key, separated by spaces.
func (c *cluster) status(key types.NamespacedName) string {
	status, _, _ := c.Ingress(key)
	var out []string
	for _, i := range status.Ingress {
		out = append(out, i.IP+i.Hostname)
	}
	return strings.Join(out, " ")
}

func (c *cluster) allEvents() map[types.NamespacedName]*eventsv1.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.events)
}

// holder returns who holds the Lease of the election.
func (c *cluster) holder() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.objLeases[types.NamespacedName{Namespace: "weir", Name: "weir"}]
	if l == nil || l.Spec.HolderIdentity == nil {
		return ""
	}
	name, _, _ := strings.Cut(*l.Spec.HolderIdentity, "_")
	return name
}
