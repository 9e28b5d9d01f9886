package report

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// api is all that a Reporter asks of the API server, one request each. The errors
// are those of k8s.io/apimachinery/pkg/api/errors where the server answered.
type api interface {
	// lease may answer from the API server's cache, and thus late, if cached.
	lease(ctx context.Context, key types.NamespacedName, cached bool) (*coordinationv1.Lease, error)
	leases(ctx context.Context, namespace, selector string) ([]coordinationv1.Lease, error)
	createLease(context.Context, *coordinationv1.Lease) (*coordinationv1.Lease, error)
	updateLease(context.Context, *coordinationv1.Lease) (*coordinationv1.Lease, error)
	// deleteLease deletes exactly this version of it.
	deleteLease(context.Context, *coordinationv1.Lease) error

	ingress(ctx context.Context, key types.NamespacedName) (*networkingv1.Ingress, error)
	// patchStatus applies a merge patch.
	patchStatus(ctx context.Context, key types.NamespacedName, manager string, patch []byte) error

	createEvent(context.Context, *eventsv1.Event) error
	// patchEvent applies a merge patch and returns the Event after it.
	patchEvent(ctx context.Context, key types.NamespacedName, patch []byte) (*eventsv1.Event, error)

	node(ctx context.Context, name string) (*corev1.Node, error)
	// service lists this Service alone; watchService tells what happens to it.
	service(ctx context.Context, key types.NamespacedName) (*corev1.ServiceList, error)
	watchService(ctx context.Context, key types.NamespacedName, version string) (watch.Interface, error)
}

// server is the real api. It has clients of four groups only: those of all groups
// would cost every agent some megabytes.
type server struct {
	core, networking, coordination, events rest.Interface

	params runtime.ParameterCodec
}

var _ api = (*server)(nil)

// newServer returns an api of config, which is not changed.
func newServer(config *rest.Config, agent string) (*server, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, networkingv1.AddToScheme, coordinationv1.AddToScheme, eventsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	c := rest.CopyConfig(config)
	if agent != "" {
		c.UserAgent = agent
	}
	c.QPS, c.RateLimiter = -1, nil // a renewal of the Lease must not queue behind statuses
	c.ContentType = runtime.ContentTypeProtobuf
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.WarningHandlerWithContext = rest.NoWarnings{}
	transport, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	s := &server{params: runtime.NewParameterCodec(scheme)}
	for _, g := range []struct {
		to    *rest.Interface
		group schema.GroupVersion
	}{
		{&s.core, corev1.SchemeGroupVersion}, {&s.networking, networkingv1.SchemeGroupVersion},
		{&s.coordination, coordinationv1.SchemeGroupVersion}, {&s.events, eventsv1.SchemeGroupVersion},
	} {
		of := rest.CopyConfig(c)
		of.GroupVersion, of.APIPath = &g.group, "/apis"
		if g.group.Group == "" {
			of.APIPath = "/api"
		}
		if *g.to, err = rest.RESTClientForConfigAndClient(of, transport); err != nil {
			return nil, fmt.Errorf("client of the API server: %w", err)
		}
	}
	return s, nil
}

// cachedVersion asks for any version that the API server has at hand.
const cachedVersion = "0"

func (s *server) lease(ctx context.Context, key types.NamespacedName, cached bool) (*coordinationv1.Lease, error) {
	var o metav1.GetOptions
	if cached {
		o.ResourceVersion = cachedVersion
	}
	out := new(coordinationv1.Lease)
	return out, s.coordination.Get().Namespace(key.Namespace).Resource("leases").Name(key.Name).
		VersionedParams(&o, s.params).MaxRetries(0).Do(ctx).Into(out)
}

func (s *server) leases(ctx context.Context, namespace, selector string) ([]coordinationv1.Lease, error) {
	out := new(coordinationv1.LeaseList)
	err := s.coordination.Get().Namespace(namespace).Resource("leases").
		VersionedParams(&metav1.ListOptions{LabelSelector: selector, ResourceVersion: cachedVersion}, s.params).
		MaxRetries(0).Do(ctx).Into(out)
	return out.Items, err
}

func (s *server) createLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	out := new(coordinationv1.Lease)
	return out, s.coordination.Post().Namespace(l.Namespace).Resource("leases").
		Body(l).MaxRetries(0).Do(ctx).Into(out)
}

func (s *server) updateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	out := new(coordinationv1.Lease)
	return out, s.coordination.Put().Namespace(l.Namespace).Resource("leases").Name(l.Name).
		Body(l).MaxRetries(0).Do(ctx).Into(out)
}

func (s *server) deleteLease(ctx context.Context, l *coordinationv1.Lease) error {
	exactly := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}}
	return s.coordination.Delete().Namespace(l.Namespace).Resource("leases").Name(l.Name).
		Body(exactly).MaxRetries(0).Do(ctx).Error()
}

func (s *server) ingress(ctx context.Context, key types.NamespacedName) (*networkingv1.Ingress, error) {
	out := new(networkingv1.Ingress)
	return out, s.networking.Get().Namespace(key.Namespace).Resource("ingresses").Name(key.Name).
		MaxRetries(0).Do(ctx).Into(out)
}

func (s *server) patchStatus(ctx context.Context, key types.NamespacedName, manager string, patch []byte) error {
	return s.networking.Patch(types.MergePatchType).Namespace(key.Namespace).Resource("ingresses").Name(key.Name).
		SubResource("status").VersionedParams(&metav1.PatchOptions{FieldManager: manager}, s.params).
		Body(patch).MaxRetries(0).Do(ctx).Error()
}

func (s *server) createEvent(ctx context.Context, e *eventsv1.Event) error {
	return s.events.Post().Namespace(e.Namespace).Resource("events").Body(e).MaxRetries(0).Do(ctx).Error()
}

func (s *server) patchEvent(ctx context.Context, key types.NamespacedName, patch []byte) (*eventsv1.Event, error) {
	out := new(eventsv1.Event)
	return out, s.events.Patch(types.MergePatchType).Namespace(key.Namespace).Resource("events").Name(key.Name).
		Body(patch).MaxRetries(0).Do(ctx).Into(out)
}

func (s *server) node(ctx context.Context, name string) (*corev1.Node, error) {
	out := new(corev1.Node)
	return out, s.core.Get().Resource("nodes").Name(name).
		VersionedParams(&metav1.GetOptions{ResourceVersion: cachedVersion}, s.params).MaxRetries(0).Do(ctx).Into(out)
}

func (s *server) service(ctx context.Context, key types.NamespacedName) (*corev1.ServiceList, error) {
	out := new(corev1.ServiceList)
	return out, s.core.Get().Namespace(key.Namespace).Resource("services").
		VersionedParams(&metav1.ListOptions{FieldSelector: "metadata.name=" + key.Name}, s.params).
		MaxRetries(0).Do(ctx).Into(out)
}

func (s *server) watchService(ctx context.Context, key types.NamespacedName, version string) (watch.Interface, error) {
	return s.core.Get().Namespace(key.Namespace).Resource("services").
		VersionedParams(&metav1.ListOptions{FieldSelector: "metadata.name=" + key.Name, Watch: true,
			AllowWatchBookmarks: true, ResourceVersion: version}, s.params).MaxRetries(0).Watch(ctx)
}
