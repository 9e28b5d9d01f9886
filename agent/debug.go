package agent

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"time"

	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/k8s/watch"
	"github.com/weirproxy/weir/l7"
	"github.com/weirproxy/weir/l7/route"
)

// TableView is a table as /debug/table shows it.
type TableView struct {
	Version uint64     `json:"version"`
	Since   time.Time  `json:"since"`
	Hosts   []HostView `json:"hosts"`
	// Clusters holds each cluster that some route names, once.
	Clusters map[string]ClusterView `json:"clusters"`
}

// HostView is one virtual host.
type HostView struct {
	Host    string      `json:"host"` // "" = any host
	Routes  []RouteView `json:"routes"`
	Default *RouteView  `json:"default,omitempty"`
}

// RouteView is one route.
type RouteView struct {
	Path    string     `json:"path,omitempty"`
	Kind    string     `json:"kind,omitempty"` // "Exact" or "Prefix"
	Source  string     `json:"source"`
	Cluster string     `json:"cluster"`
	Policy  PolicyView `json:"policy"`
}

// ClusterView is a cluster's endpoints at one moment.
type ClusterView struct {
	Version  uint64         `json:"version"` // of the set
	Active   []EndpointView `json:"active"`
	Draining []EndpointView `json:"draining"`
	Lost     []EndpointView `json:"lost"`
}

// EndpointView is one endpoint.
type EndpointView struct {
	Address string `json:"address"`
	Node    string `json:"node,omitempty"`
	Zone    string `json:"zone,omitempty"`
	Local   bool   `json:"local,omitempty"` // its slice says that it runs on this node
	Link    string `json:"link,omitempty"`  // of this node, that leads to it as far as the network tells
	// Tier counts from 1, the nearest. It is 0 if all active ones are equally near,
	// and for the others.
	Tier int `json:"tier,omitempty"`
}

// tableView shows f; linkOf tells which link leads to an address, "" none.
func tableView(f *inForce, linkOf func(netip.Addr) string) TableView {
	v := TableView{Hosts: []HostView{}, Clusters: map[string]ClusterView{}}
	if f == nil {
		return v
	}
	v.Version, v.Since = f.Table.Version, f.since
	add := func(r *route.Route) RouteView {
		if _, ok := v.Clusters[r.Cluster.Name]; !ok {
			v.Clusters[r.Cluster.Name] = clusterView(r.Cluster, linkOf)
		}
		return routeView(r)
	}
	for _, h := range f.Table.Hosts() {
		host := HostView{Host: h.Name, Routes: []RouteView{}}
		for _, r := range h.Routes {
			host.Routes = append(host.Routes, add(r))
		}
		if h.Default != nil {
			d := add(h.Default)
			host.Default = &d
		}
		v.Hosts = append(v.Hosts, host)
	}
	return v
}

func routeView(r *route.Route) RouteView {
	v := RouteView{Path: r.Path, Source: r.Source, Cluster: r.Cluster.Name, Policy: policyView(r.Policy)}
	if r.Path != "" {
		v.Kind = r.Kind.String()
	}
	return v
}

func clusterView(c *route.Cluster, linkOf func(netip.Addr) string) ClusterView {
	set := c.Endpoints()
	list := func(endpoints []*route.Endpoint) []EndpointView {
		out := make([]EndpointView, len(endpoints))
		for i, e := range endpoints {
			out[i] = EndpointView{Address: e.Addr.String(), Node: e.Node, Zone: e.Zone, Local: e.Local, Link: linkOf(e.Addr.Addr())}
		}
		return out
	}
	v := ClusterView{Version: set.Version, Active: list(set.Active), Draining: list(set.Draining), Lost: list(set.Lost)}
	start := 0
	for n, end := range set.Tiers {
		for i := start; i < end && len(set.Tiers) > 1; i++ {
			v.Active[i].Tier = n + 1
		}
		start = end
	}
	return v
}

// NoticeView is a notice as /debug/notices shows it.
type NoticeView struct {
	Severity  string `json:"severity"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Field     string `json:"field,omitempty"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
	Remedy    string `json:"remedy,omitempty"`
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
}

func noticeView(n k8s.Notice) NoticeView {
	return NoticeView{n.Severity.String(), n.Kind, n.Namespace, n.Name, n.Field, n.Reason, n.Message, n.Remedy, n.File, n.Line}
}

func noticeViews(notices []k8s.Notice) []NoticeView {
	out := make([]NoticeView, len(notices))
	for i, n := range notices {
		out[i] = noticeView(n)
	}
	return out
}

func (a *admin) table(w http.ResponseWriter, _ *http.Request) {
	a.json(w, tableView(a.state.inForce.Load(), a.state.linkOf))
}

// statsView is l7.Stats as /debug/workers shows it.
type statsView struct {
	l7.Stats
	Unmatched map[string]uint64 // by name of the status class
	Accept    AcceptView
}

func (a *admin) workers(w http.ResponseWriter, _ *http.Request) {
	v := statsView{Stats: a.stats(), Unmatched: map[string]uint64{}, Accept: a.state.accept.see()}
	for i, n := range v.Stats.Unmatched {
		v.Unmatched[statusClasses[i]] = n
	}
	a.json(w, v)
}

func (a *admin) notices(w http.ResponseWriter, _ *http.Request) {
	var list []k8s.Notice
	if f := a.state.inForce.Load(); f != nil {
		list = f.notices
	}
	a.json(w, noticeViews(list))
}

func (a *admin) source(w http.ResponseWriter, _ *http.Request) {
	kinds := []watch.KindStats{}
	if a.state.watch != nil {
		kinds = a.state.watch().Kinds
	}
	a.json(w, kinds)
}

// json answers v. Fields marshal without error; a client that went away is no
// news.
func (a *admin) json(w http.ResponseWriter, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		a.logger.Error("encode a debug page", "err", err)
		text(w, http.StatusInternalServerError, "the page can't be encoded: see the log\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(b, '\n'))
}
