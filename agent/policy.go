package agent

import (
	"strings"

	"github.com/weirproxy/weir/l7/route"
)

// PolicyView is a route's policy in readable form.
type PolicyView struct {
	ConnectTimeout string   `json:"connectTimeout"`
	SendTimeout    string   `json:"sendTimeout"`
	ReadTimeout    string   `json:"readTimeout"`
	BodyBytesMax   int64    `json:"bodyBytesMax"` // 0 = no limit
	Tries          int      `json:"tries"`        // 0 = no limit
	TriesTimeout   string   `json:"triesTimeout,omitempty"`
	RetryOn        []string `json:"retryOn"`
	Balance        string   `json:"balance"`
	HashBy         string   `json:"hashBy,omitempty"` // e.g. "$host$uri"
}

func policyView(p *route.Policy) PolicyView {
	v := PolicyView{
		ConnectTimeout: p.ConnectTimeout.String(),
		SendTimeout:    p.SendTimeout.String(),
		ReadTimeout:    p.ReadTimeout.String(),
		BodyBytesMax:   p.BodyBytesMax,
		Tries:          p.Tries,
		RetryOn:        retryNames(p.RetryOn),
		Balance:        p.Balance.String(),
	}
	if p.TriesTimeout > 0 {
		v.TriesTimeout = p.TriesTimeout.String()
	}
	if p.Balance == route.Hash {
		v.HashBy = hashText(p.HashBy)
	}
	return v
}

// retryNames spells a set of conditions as ingress-nginx does.
func retryNames(set route.RetryOn) []string {
	out := []string{}
	for _, c := range []struct {
		bit  route.RetryOn
		name string
	}{
		{route.RetryError, "error"}, {route.RetryTimeout, "timeout"}, {route.RetryInvalidHead, "invalid_header"},
		{route.Retry500, "http_500"}, {route.Retry502, "http_502"}, {route.Retry503, "http_503"},
		{route.Retry504, "http_504"}, {route.Retry403, "http_403"}, {route.Retry404, "http_404"},
		{route.Retry429, "http_429"}, {route.RetryNonIdempotent, "non_idempotent"},
	} {
		if set&c.bit != 0 {
			out = append(out, c.name)
		}
	}
	return out
}

// hashText spells the key of a consistent hash as ingress-nginx does.
func hashText(parts []route.HashPart) string {
	var b strings.Builder
	variable := func(name string) string { return strings.ReplaceAll(name, "-", "_") }
	for _, p := range parts {
		switch p.Source {
		case route.HashText:
			b.WriteString(p.Name)
		case route.HashRemoteAddr:
			b.WriteString("$remote_addr")
		case route.HashHost:
			b.WriteString("$host")
		case route.HashURI:
			b.WriteString("$request_uri")
		case route.HashPath:
			b.WriteString("$uri")
		case route.HashHeader:
			b.WriteString("$http_" + variable(p.Name))
		case route.HashCookie:
			b.WriteString("$cookie_" + p.Name)
		case route.HashQuery:
			b.WriteString("$arg_" + p.Name)
		}
	}
	return b.String()
}
