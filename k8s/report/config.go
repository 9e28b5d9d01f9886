package report

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// Config is what a Reporter is made from. All fields must be set but those that
// say otherwise.
type Config struct {
	API   *rest.Config // its limits of rate are not used: Rate holds
	Agent string       // the user agent, such as "weir/1.2.3"; "": that of API

	Identity  string // names this agent in the Lease and in Events: the pod or the host
	Namespace string // of the Leases
	Lease     string // whoever holds it leads; a DNS label of at most 50 bytes

	Publish Publish
	Rate    int // statuses, and as many Events, written per second; 0: 20

	Logger *slog.Logger // nil: nothing is logged
}

// View is what the agent has of the objects. Any goroutine may call the methods.
type View interface {
	// Ingress returns the status of an Ingress and a reference with its UID, as
	// they were seen last; ok is false if it does not exist or is not visible.
	Ingress(types.NamespacedName) (status networkingv1.IngressLoadBalancerStatus, ref corev1.ObjectReference, ok bool)
	// Ingresses names all that are visible, ours or not.
	Ingresses() []types.NamespacedName
	// Reference does what Ingress does for any object.
	Reference(kind, namespace, name string) (ref corev1.ObjectReference, ok bool)
}

// Publish says what stands in the status of Ingresses. The first source that is
// given counts: Addresses, Service, else the addresses of the nodes that run Weir.
type Publish struct {
	Status    bool     // false: no status is written, nothing else here counts
	Addresses []string // IP addresses or host names
	Service   string   // namespace/name of the one whose addresses are taken; "": none
	NodeName  string   // the node that this agent runs on; "": unknown
	// ClearAtEnd removes what stands in the status when the last agent ends.
	ClearAtEnd bool
}

// nodes reports whether each agent has to tell the address of its node.
func (p Publish) nodes() bool { return p.Status && len(p.Addresses) == 0 && p.Service == "" }

const (
	defaultRate = 20
	// leaseNameMax leaves room in the field manager, 128 bytes, for the namespace.
	leaseNameMax = 50
)

// complete returns c with defaults filled in.
func (c Config) complete() (Config, error) {
	switch {
	case c.API == nil:
		return c, errors.New("no API server")
	case c.Identity == "":
		return c, errors.New("no identity")
	case len(validation.IsDNS1123Label(c.Namespace)) != 0:
		return c, fmt.Errorf("namespace of the Leases %q: want a DNS label", c.Namespace)
	case len(c.Lease) > leaseNameMax || len(validation.IsDNS1123Label(c.Lease)) != 0:
		return c, fmt.Errorf("name of the Lease %q: want a DNS label of at most %d bytes", c.Lease, leaseNameMax)
	case c.Rate < 0:
		return c, fmt.Errorf("rate %d: want 0 or more", c.Rate)
	}
	if s := c.Publish.Service; s != "" && (serviceKey(s).Namespace == "" || serviceKey(s).Name == "") {
		return c, fmt.Errorf("publish Service %q: want NAMESPACE/NAME", s)
	}
	for _, a := range c.Publish.Addresses {
		if err := CheckAddress(a); err != nil {
			return c, err
		}
	}
	if c.Rate == 0 {
		c.Rate = defaultRate
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// serviceKey reads namespace/name.
func serviceKey(s string) types.NamespacedName {
	namespace, name, _ := strings.Cut(s, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// CheckAddress says what is wrong with s as an address to publish, nil if it is an
// IP address or a host name.
func CheckAddress(s string) error {
	if _, err := netip.ParseAddr(s); err == nil && !strings.Contains(s, "%") {
		return nil
	}
	// A name of digits and dots is a mistyped address.
	if len(validation.IsDNS1123Subdomain(s)) != 0 || strings.Trim(s, "0123456789.") == "" {
		return fmt.Errorf("address to publish %q: want an IP address or a host name", s)
	}
	return nil
}
