package k8s

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weirproxy/weir/l7/route"
)

// ingress is what one Ingress asks for, as far as it can be told without any
// other object. It is immutable but for policy.
type ingress struct {
	object *networkingv1.Ingress
	key    types.NamespacedName
	source string // key as text

	undated   bool // its age is that of its file
	canary    bool // left out: it has no rules of its own
	denied    bool // an annotation that may not be left out: all routes answer 503
	noAuth    bool // enable-global-auth: "false"
	overrides []override
	settings  string   // overrides as text, equal for equal ones
	hosts     []string // that its rules name, without duplicates
	rules     []rule
	byHost    map[string][]int // indices of rules; nil if there are few hosts
	fallback  *backend         // spec.defaultBackend
	notices   []Notice

	policy *sharedPolicy // of the translator that serves it
}

// rule is one path of one host.
type rule struct {
	host   string
	path   string // normalised
	kind   route.PathKind
	field  string // of the path, such as "spec.rules[0].http.paths[1]"
	denied bool   // can't be served as it is meant: answers 503
	guess  bool   // path is only where a refused regular expression may match
	to     backend
}

// backend is a reference to a port of a Service.
type backend struct {
	service string
	name    string // of the port; "" if number counts
	number  int32
	field   string
	refused bool // not such a reference: answers 503
}

// readIngress checks every value of o and keeps the good ones.
func readIngress(o *networkingv1.Ingress, known *spelling) *ingress {
	i := &ingress{object: o, key: types.NamespacedName{Namespace: o.Namespace, Name: o.Name}}
	i.source = i.key.String()
	rewrite := i.readAnnotations(known)
	if i.canary {
		return i
	}
	if b := o.Spec.DefaultBackend; b != nil {
		to := i.readBackend(b, "spec.defaultBackend")
		i.fallback = &to
	}
	for n := range o.Spec.Rules {
		i.readRule(&o.Spec.Rules[n], "spec.rules["+strconv.Itoa(n)+"]", rewrite)
	}
	i.indexRules()
	if len(o.Spec.TLS) != 0 {
		i.note(Info, "spec.tls", "NoTLS", tlsNote, "")
	}
	if len(o.Spec.Rules) == 0 && i.fallback == nil {
		i.note(Warning, "spec", "Empty", "neither rules nor a defaultBackend: nothing is served", "add one of them")
	}
	return i
}

// fewHosts is up to how many hosts an Ingress is searched for the rules of one.
const fewHosts = 8

func (i *ingress) indexRules() {
	if len(i.hosts) <= fewHosts {
		return
	}
	i.byHost = make(map[string][]int, len(i.hosts))
	for n := range i.rules {
		i.byHost[i.rules[n].host] = append(i.byHost[i.rules[n].host], n)
	}
}

// rulesOf yields the rules of a host in their order.
func (i *ingress) rulesOf(host string) iter.Seq[*rule] {
	return func(yield func(*rule) bool) {
		if i.byHost != nil {
			for _, n := range i.byHost[host] {
				if !yield(&i.rules[n]) {
					return
				}
			}
			return
		}
		for n := range i.rules {
			if i.rules[n].host == host && !yield(&i.rules[n]) {
				return
			}
		}
	}
}

const tlsNote = "this version of Weir does not terminate TLS: the hosts are served over plain HTTP only, without redirect"

func (i *ingress) note(s Severity, field, reason, message, remedy string) {
	i.notices = append(i.notices, Notice{
		Severity: s, Kind: "Ingress", Namespace: i.key.Namespace, Name: i.key.Name,
		Field: field, Reason: reason, Message: message, Remedy: remedy,
	}.advised())
}

func (i *ingress) readRule(r *networkingv1.IngressRule, field string, rewrite rewriting) {
	if err := checkHost(r.Host); err != nil {
		i.note(Error, field+".host", "InvalidHost",
			fmt.Sprintf("host %q %v: the rule is left out", r.Host, err), "use a lower-case DNS name or *.name")
		return
	}
	first := true
	for _, h := range i.hosts {
		first = first && h != r.Host
	}
	if first {
		i.hosts = append(i.hosts, r.Host)
	}
	if r.HTTP == nil || len(r.HTTP.Paths) == 0 { // all of the host goes to the default backend
		if i.fallback == nil {
			i.note(Warning, field+".http", "NoPaths", "the rule has no paths and the Ingress no defaultBackend: it adds no route", "add one of them")
		}
		return
	}
	for n := range r.HTTP.Paths {
		i.readPath(r.Host, &r.HTTP.Paths[n], field+".http.paths["+strconv.Itoa(n)+"]", rewrite)
	}
}

func (i *ingress) readPath(host string, p *networkingv1.HTTPIngressPath, field string, rewrite rewriting) {
	r := rule{host: host, kind: route.Prefix, field: field}
	pathType := networkingv1.PathType("")
	if p.PathType != nil {
		pathType = *p.PathType
	}
	switch pathType {
	case networkingv1.PathTypeExact:
		r.kind = route.Exact
	case networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific:
	default:
		i.note(Error, field+".pathType", "InvalidPathType",
			fmt.Sprintf("pathType %q: the path %q is left out", pathType, p.Path), "use Exact, Prefix or ImplementationSpecific")
		return
	}
	literal := p.Path
	if rewrite.regex && pathType == networkingv1.PathTypeImplementationSpecific && strings.ContainsAny(literal, regexBytes) {
		i.note(Error, field+".path", "NotServed", fmt.Sprintf("path %q is a regular expression, which this version of "+
			"Weir does not evaluate: requests below %q that no other rule matches answer 503", p.Path, literalPrefix(literal)), "")
		literal, r.denied, r.guess = literalPrefix(literal), true, true
	} else if rewrite.target != "" && rewrite.target != p.Path {
		i.note(Error, field+".path", "NotServed", fmt.Sprintf("path %q would be rewritten to %q, which this version of "+
			"Weir does not do: it answers 503", p.Path, rewrite.target), "")
		r.denied = true
	}
	normal, err := normalPath(literal)
	if err != nil {
		i.note(Error, field+".path", "InvalidPath", fmt.Sprintf("path %q %v: it is left out", p.Path, err), "")
		return
	}
	r.path = normal
	i.warnPath(p.Path, r, field+".path")
	r.to = i.readBackend(&p.Backend, field+".backend")
	i.rules = append(i.rules, r)
}

// warnPath tells what a user of another controller may not expect.
func (i *ingress) warnPath(path string, r rule, field string) {
	switch {
	case r.guess:
	case strings.ContainsAny(path, regexBytes):
		i.note(Warning, field, "LiteralPath", fmt.Sprintf("path %q is compared literally: "+
			"'*' and the like have no special meaning in pathType %s", path, r.kind),
			"a Prefix covers what is below it: use the path without the last segment")
	case path != "" && path != r.path:
		i.note(Info, field, "PathNormalised", fmt.Sprintf("path %q is compared as %q, the form that requests are brought to", path, r.path), "")
	}
}

func (i *ingress) readBackend(b *networkingv1.IngressBackend, field string) backend {
	to := backend{field: field}
	refuse := func(reason, message, remedy string) backend {
		i.note(Error, field, reason, message+": requests answer 503", remedy)
		to.refused = true
		return to
	}
	switch {
	case b.Resource != nil:
		return refuse("ResourceBackend", fmt.Sprintf("resource backends (here %s %q) are not supported", b.Resource.Kind, b.Resource.Name),
			"use a Service")
	case b.Service == nil:
		return refuse("InvalidBackend", "no service is given", "set service.name and service.port")
	case len(validation.IsDNS1123Label(b.Service.Name)) != 0:
		return refuse("InvalidBackend", fmt.Sprintf("service name %q is not valid", b.Service.Name), "")
	}
	port := b.Service.Port
	to.service, to.name, to.number = b.Service.Name, port.Name, port.Number
	switch {
	case port.Name != "" && port.Number != 0:
		return refuse("InvalidBackend", "the port has both a name and a number", "give one of them")
	case port.Name == "" && (port.Number < 1 || port.Number > 65535):
		return refuse("InvalidBackend", fmt.Sprintf("port number %d is not from 1 to 65535", port.Number), "")
	case port.Name != "" && len(validation.IsValidPortName(port.Name)) != 0:
		remedy := ""
		if strings.Trim(port.Name, "0123456789") == "" {
			remedy = "write the port as a number: port: {number: " + port.Name + "}"
		}
		return refuse("InvalidBackend", fmt.Sprintf("port name %q is not valid: %s", clip(port.Name),
			strings.Join(validation.IsValidPortName(port.Name), "; ")), remedy)
	}
	return to
}
