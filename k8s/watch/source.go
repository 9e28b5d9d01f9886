package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/weirproxy/weir/k8s"
)

// Config is what a Source is made from.
type Config struct {
	API    *rest.Config // of Connect; not changed
	Agent  string       // the user agent, such as "weir/1.2.3"
	Logger *slog.Logger // nil: nothing is logged

	// Objects says which Ingresses are ours. With WatchNamespaces each of these is
	// watched by itself, so that a Role in each suffices.
	Objects           k8s.Options
	IngressSelector   string // of labels; "" all. Others are invisible
	NamespaceSelector string // of labels of namespaces; "" all. What is in others is invisible
	NodeName          string // the own Node; "" unknown: it is not watched

	// StatusChanged is called when nothing but the status of an Ingress changed, by
	// any goroutine, which it must not hold up. May be nil.
	StatusChanged func(types.NamespacedName)
}

// Source follows an API server. It may run once.
type Source struct {
	config  Config
	clients *clients
	store   *store
	journal *journal
	silence time.Duration

	feeds []*feed // all but those of Secrets

	// owned by Run
	group   sync.WaitGroup // feeds that run
	secrets map[key]namedFeed
	gate    chan struct{}
}

// New returns a source that has read nothing yet. It sends no request.
func New(c Config) (*Source, error) {
	if c.API == nil {
		return nil, errors.New("watch: no API server")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	for what, selector := range map[string]string{"ingress": c.IngressSelector, "namespace": c.NamespaceSelector} {
		if err := CheckSelector(selector); err != nil {
			return nil, fmt.Errorf("%s selector: %w", what, err)
		}
	}
	clients, err := newClients(c.API, c.Agent)
	if err != nil {
		return nil, err
	}
	s := &Source{
		config: c, clients: clients, store: newStore(c.Objects, c.NamespaceSelector != "", c.StatusChanged),
		silence: silenceMax, secrets: make(map[key]namedFeed), gate: make(chan struct{}, secretsAtOnce),
	}
	s.journal = &journal{s.store, c.Logger}
	for _, x := range scopes(c) {
		f := s.newFeed(x.kind, x.scope)
		s.feeds = append(s.feeds, f)
		s.store.open(f)
	}
	return s, nil
}

// CheckSelector says what is wrong with a selector of labels, nil if nothing is.
func CheckSelector(s string) error {
	if _, err := labels.Parse(s); err != nil {
		return fmt.Errorf("want labels as team=a,tier!=test,zone in (a,b): %w", err)
	}
	return nil
}

func (s *Source) newFeed(k *kind, x scope) *feed {
	return &feed{kind: k, scope: x, clients: s.clients, store: s.store, journal: s.journal, silence: s.silence, pause: pause{optional: k.optional}}
}

// Run calls changed with all objects once everything was read, then after each
// change, until ctx ends. The first call waits for every kind, as long as that
// takes; why it has to is logged. changed is called by one goroutine, the caller's;
// maps are the callee's, the objects in them are shared. The error is always nil.
func (s *Source) Run(ctx context.Context, changed func(k8s.Change)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.group.Wait()
	defer cancel()
	for _, f := range s.feeds {
		s.group.Go(func() { f.run(ctx) })
	}
	s.store.tell(ctx, func() { s.followSecrets(ctx) }, changed)
	return nil
}

// Ingress returns the addresses that the status of an Ingress has, and how an
// Event names it, with the resource version that was seen last; ok is false if it
// does not exist or is not visible. Any goroutine may call it.
func (s *Source) Ingress(k types.NamespacedName) (status networkingv1.IngressLoadBalancerStatus, ref corev1.ObjectReference, ok bool) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	e := s.store.tables[ingressKind][k]
	if e == nil || !s.store.visible(k.Namespace) {
		return status, ref, false
	}
	return e.status, ingressKind.reference(k, e), true
}

// Ingresses returns the names of all that are visible, ours or not. Any goroutine
// may call it.
func (s *Source) Ingresses() []types.NamespacedName {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	out := make([]types.NamespacedName, 0, len(s.store.tables[ingressKind]))
	for k := range s.store.tables[ingressKind] {
		if s.store.visible(k.Namespace) {
			out = append(out, k)
		}
	}
	return out
}

// Reference returns how an Event names an object; ok is false if it is not known
// or its namespace is not visible. Any goroutine may call it.
func (s *Source) Reference(kind, namespace, name string) (ref corev1.ObjectReference, ok bool) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	at := key{Namespace: namespace, Name: name}
	for _, k := range kinds {
		if k.name != kind {
			continue
		}
		if e := s.store.tables[k][at]; e != nil && (!k.namespaced || s.store.visible(namespace)) {
			return k.reference(at, e), true
		}
	}
	return ref, false
}
