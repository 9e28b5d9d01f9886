package agent

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/l7/http1"
	"github.com/weirproxy/weir/l7/route"
)

// The limits of a head that Explain holds a request against: the defaults.
var explainLimits = http1.Limits{HeadBytes: 32 << 10, LineBytes: 16 << 10, Fields: 128}

// Answer is what a request would get.
type Answer struct {
	Request RequestView `json:"request"`
	// Status is what Weir would answer itself: 400, 404, 413, 503 and so on; 0 if
	// an endpoint answers.
	Status     int             `json:"status,omitempty"`
	Reason     string          `json:"reason,omitempty"` // of Status, one line
	Host       *string         `json:"host,omitempty"`   // whose rules decide; "" = those for any host
	Route      *RouteView      `json:"route,omitempty"`
	RouteHost  string          `json:"routeHost,omitempty"` // host of that rule
	Endpoints  *ClusterView    `json:"endpoints,omitempty"`
	Candidates []CandidateView `json:"candidates"`
	// Notices are those about the objects that have to do with the request.
	Notices []NoticeView `json:"notices"`
}

// RequestView is a request as the data path understands it.
type RequestView struct {
	Method string `json:"method"`
	Target string `json:"target"` // as sent
	Host   string `json:"host"`   // as matched: lower case, without port
	Path   string `json:"path"`   // as matched: normalised
	Query  string `json:"query,omitempty"`
	// Forwarded is the target that the endpoint gets.
	Forwarded string `json:"forwarded,omitempty"`
}

// CandidateView is a route and why it was or was not chosen.
type CandidateView struct {
	Host    string `json:"host"`
	Path    string `json:"path,omitempty"` // "" = default backend
	Kind    string `json:"kind,omitempty"`
	Source  string `json:"source"`
	Cluster string `json:"cluster"`
	Reason  string `json:"reason"`
	// The two reasons that a reader may want to tell apart.
	Chosen    bool `json:"chosen,omitempty"`
	OtherHost bool `json:"otherHost,omitempty"`
}

// Explain returns what the request would get if the objects were served as they
// are now. The error is about the question or the directory, never about the
// request: one that would be refused has an Answer.
func Explain(q Question) (Answer, error) {
	head, err := q.head()
	if err != nil {
		return Answer{}, err
	}
	f, _, err := translate(q.Manifests, q.Objects)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Candidates: []CandidateView{}, Notices: []NoticeView{}}
	var r http1.Request
	n, refused := r.Parse(head, &explainLimits)
	if refused != nil {
		a.Request = RequestView{Method: q.Method, Target: q.target()}
		a.Status, a.Reason = refused.Status, fmt.Sprintf("%s (%s)", refused.Text, refused.Reason)
		return a, nil
	}
	if n == 0 {
		return Answer{}, fmt.Errorf("the request %s %s has no complete head", q.Method, q.URL)
	}
	a.Request = requestView(&r)
	e := f.Table.Explain(a.Request.Host, a.Request.Path)
	a.take(e, &r)
	a.Notices = relevant(f.notices, e, a.Request.Host)
	return a, nil
}

// take fills in what the table says.
func (a *Answer) take(e route.Explanation, r *http1.Request) {
	if e.HostFound {
		a.Host = &e.Host
	}
	for _, c := range e.Candidates {
		v := CandidateView{
			Host: c.Host, Path: c.Route.Path, Source: c.Route.Source, Cluster: c.Route.Cluster.Name,
			Reason: c.Reason.String(), Chosen: c.Reason == route.Chosen, OtherHost: c.Reason == route.OtherHost,
		}
		if v.Path != "" {
			v.Kind = c.Route.Kind.String()
		}
		a.Candidates = append(a.Candidates, v)
	}
	if e.Route == nil {
		a.Status, a.Reason = 404, "no rule has the host"
		if e.HostFound {
			a.Reason = "the host has no rule for the path"
		}
		return
	}
	view, set := routeView(e.Route), clusterView(e.Route.Cluster, new(state).linkOf)
	a.Route, a.RouteHost, a.Endpoints = &view, e.Route.Host, &set
	limit := e.Route.Policy.BodyBytesMax
	switch {
	case r.Body == http1.BodyLength && limit > 0 && r.Length > limit:
		a.Status, a.Reason = 413, fmt.Sprintf("the body has %d bytes, the route takes %d", r.Length, limit)
	case len(set.Active) == 0:
		a.Status, a.Reason = 503, "the cluster has no endpoint that takes requests"
	}
}

func requestView(r *http1.Request) RequestView {
	v := RequestView{
		Method: string(r.MethodText),
		Target: string(r.Target),
		Host:   string(r.Host),
		Path:   string(r.Path),
		Query:  string(r.Query),
	}
	v.Forwarded = v.Target
	if r.Rewritten {
		v.Forwarded = v.Path + v.Query
	}
	return v
}

// translate reads a directory once and returns what an agent would serve from it.
func translate(dir string, options k8s.Options) (*inForce, *k8s.Objects, error) {
	d, err := k8s.NewDir(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	objects, notices, err := d.Load()
	if err != nil {
		return nil, nil, fmt.Errorf("read objects from %s: %w", dir, err)
	}
	f := &inForce{Result: k8s.NewTranslator(serving(options)).Apply(objects)}
	f.notices = append(notices, f.Notices...)
	if f.Table == nil {
		return nil, nil, fmt.Errorf("objects from %s: they gave no table", dir)
	}
	return f, objects, nil
}

// serving returns options as Run would set them for one worker.
func serving(options k8s.Options) k8s.Options {
	options.Workers, options.AllowLoopback = 1, true
	return options
}

// relevant returns the notices about files, about the Ingresses of rules that
// cover the host, about the chosen cluster's Service, and those that name the host.
// If nothing serves the request, each error of an Ingress may be the cause.
func relevant(notices []k8s.Notice, e route.Explanation, host string) []NoticeView {
	names := map[string]bool{}
	for _, c := range e.Candidates {
		if c.Reason != route.OtherHost {
			names["Ingress "+c.Route.Source] = true
		}
	}
	if e.Route != nil {
		service, _, _ := strings.Cut(e.Route.Cluster.Name, ":")
		names["Service "+service] = true
	}
	out := []NoticeView{}
	for _, n := range notices {
		if n.Kind == "" || names[n.Kind+" "+n.Namespace+"/"+n.Name] || host != "" && strings.Contains(n.Message, host) ||
			e.HostFound && n.Reason == "HostAlreadyClaimed" && strings.Contains(n.Message, strconv.Quote(e.Host)) ||
			e.Route == nil && n.Kind == "Ingress" && n.Severity == k8s.Error {
			out = append(out, noticeView(n))
		}
	}
	return out
}
