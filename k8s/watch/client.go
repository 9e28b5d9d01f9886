package watch

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// clients send the requests, one for each group of kinds.
type clients struct {
	byGroup map[schema.GroupVersion]rest.Interface
	params  runtime.ParameterCodec
}

// newClients makes clients that speak protobuf. config is not changed.
func newClients(config *rest.Config, agent string) (*clients, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	c := rest.CopyConfig(config)
	c.UserAgent = agent
	c.QPS, c.RateLimiter = -1, nil // each feed backs off by itself
	c.WarningHandlerWithContext = rest.NoWarnings{}
	c.ContentType = runtime.ContentTypeProtobuf
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if c.BearerTokenFile != "" {
		// Unlike what rest.Config does by itself, this reads the file again not only
		// once a minute, but also when its token was refused.
		c.Wrap(transport.ResettableTokenSourceWrapTransport(transport.NewCachedFileTokenSource(c.BearerTokenFile)))
		c.BearerToken, c.BearerTokenFile = "", ""
	}
	wire, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	out := &clients{byGroup: make(map[schema.GroupVersion]rest.Interface), params: runtime.NewParameterCodec(scheme)}
	for _, k := range kinds {
		if out.byGroup[k.group] == nil {
			if out.byGroup[k.group], err = newClient(c, wire, k.group); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func newClient(config *rest.Config, wire *http.Client, group schema.GroupVersion) (rest.Interface, error) {
	c := rest.CopyConfig(config)
	c.GroupVersion = &group
	c.APIPath = "/apis"
	if group.Group == "" {
		c.APIPath = "/api"
	}
	r, err := rest.RESTClientForConfigAndClient(c, wire)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	return r, nil
}

// request begins a request for what scope has of kind k.
func (c *clients) request(k *kind, s scope, o metav1.ListOptions) *rest.Request {
	if s.name != "" {
		// The API server takes such a list for one of this object alone, so that
		// a rule with resourceNames may allow it.
		o.FieldSelector = "metadata.name=" + s.name
	}
	o.LabelSelector = s.labels
	return c.byGroup[k.group].Get().NamespaceIfScoped(s.namespace, s.namespace != "").Resource(k.resource).
		VersionedParams(&o, c.params).MaxRetries(0)
}

func (c *clients) list(ctx context.Context, k *kind, s scope, o metav1.ListOptions) (runtime.Object, error) {
	list := k.list()
	err := c.request(k, s, o).Do(ctx).Into(list)
	return list, err
}

func (c *clients) watch(ctx context.Context, k *kind, s scope, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch, o.AllowWatchBookmarks = true, true
	return c.request(k, s, o).Watch(ctx)
}
