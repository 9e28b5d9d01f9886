package k8s

import (
	"github.com/weirproxy/weir/l7/route"
)

// Options say which objects count and how they are read. The zero value serves
// the classes of DefaultControllers in all namespaces.
type Options struct {
	Workers           int      // shards of the statistics; 0 counts as 1
	ControllerClasses []string // empty: DefaultControllers
	IngressClass      string   // only the class of this name; "" = every class of the controllers
	WatchWithoutClass bool     // Ingresses without class are served if there is no default class
	WatchNamespaces   []string // empty: all
	ConfigMap         string   // "namespace/name" of the global settings; "" none
	SharedHosts       bool     // hosts don't belong to the namespace that claimed them first
	AllowLoopback     bool     // endpoints on loopback addresses are used
}

// Result is what one Apply changed and what is in force after it.
type Result struct {
	Table            *route.Table // nil if routing did not change
	EndpointsChanged int          // clusters whose endpoints were replaced
	Notices          []Notice     // all that are in force now, sorted. Read only

	Ingresses int // served, in part at least
	Hosts     int // "any host" counts as one
	Routes    int // default backends included
	Clusters  int

	// What the table in force counts in, sorted by name. Those that a new table
	// does not use any more are not listed: they live on only as long as a
	// request still holds their route, and start from zero if they come back.
	// Read only.
	RouteStats  []*route.RouteStats
	ClusterList []*route.Cluster
}

// Translator turns sets of objects into tables. It keeps clusters, statistics
// and the owners of hosts from one Apply to the next. One goroutine at a time
// may use it.
type Translator struct{ options Options }

// NewTranslator returns a translator that has seen nothing yet.
func NewTranslator(o Options) *Translator { return &Translator{options: o} }

// Apply brings clusters in step with o at once and returns a new table if
// routing changed.
func (t *Translator) Apply(o *Objects) Result { return Result{} }
