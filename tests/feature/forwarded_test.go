package feature

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirproxy/weir/tests/rig"
)

// received sends a GET with fields through p and returns it as the backend saw
// it.
func (p *pool) received(t *testing.T, fields ...string) *rig.Request {
	t.Helper()
	if m := rig.Do(t, p.Addr, "GET", rig.Get(host, "/x", fields...)); m.Status != 200 {
		t.Fatalf("GET with %q -> %d, want 200", fields, m.Status)
	}
	return p.backends[0].Last(t)
}

// wantFields compares fields that must be there once with these values; "" means
// not at all.
func wantFields(t *testing.T, r *rig.Request, want map[string]string) {
	t.Helper()
	for name, value := range want {
		got, list := r.Values(name), []string{value}
		if value == "" {
			list = nil
		}
		if !slices.Equal(got, list) {
			t.Errorf("%s: %q, want %q", name, got, list)
		}
	}
}

var requestID = regexp.MustCompile(`^[0-9a-f]{32}$`)

func TestEveryRequestGetsAnIDOfItsOwn(t *testing.T) {
	p := newPool(t, 1, nil, "--workers", "2")
	seen := map[string]bool{}
	for range 20 { // each on a connection of its own, so on both workers
		c := rig.Dial(t, p.Addr)
		for range 5 {
			c.Send(rig.Get(host, "/"))
			c.Read("GET")
			ids := p.backends[0].Last(t).Values("X-Request-ID")
			if len(ids) != 1 || !requestID.MatchString(ids[0]) {
				t.Fatalf("X-Request-ID: %q, want one of 32 hex digits", ids)
			}
			seen[ids[0]] = true
		}
		c.Close()
	}
	if len(seen) != 100 {
		t.Errorf("%d different ids in 100 requests", len(seen))
	}
}

func TestTheClientsRequestIDIsPassedOn(t *testing.T) {
	p := newPool(t, 1, nil)
	wantFields(t, p.received(t, "x-request-id: of-the-client-7"), map[string]string{"X-Request-ID": "of-the-client-7"})
	for name, foreign := range map[string]string{
		"4,000 bytes": strings.Repeat("a", 4000), "two words": "a b", "a quote": `a"b`, "nothing": "",
	} {
		ids := p.received(t, "X-Request-ID: "+foreign).Values("X-Request-ID")
		if len(ids) != 1 || !requestID.MatchString(ids[0]) {
			t.Errorf("instead of an id of %s: %.80q, want one of 32 hex digits", name, ids)
		}
	}
}

func TestWithoutRequestIDNoneIsMade(t *testing.T) {
	p := newPool(t, 1, nil, "--request-id=false")
	wantFields(t, p.received(t), map[string]string{"X-Request-ID": ""})
	wantFields(t, p.received(t, "X-Request-ID: mine"), map[string]string{"X-Request-ID": "mine"})
}

// claims are what a client says of itself.
var claims = []string{
	"x-forwarded-for: 6.6.6.6", "X-Forwarded-Host: evil.test", "X-Forwarded-Port: 444", "X-Forwarded-Proto: https",
	"X-Forwarded-Scheme: ftp", "X-Scheme: ftp", "X-Real-IP: 6.6.6.7", "X-Original-Forwarded-For: 6.6.6.8",
}

func TestForwardedFieldsAreWeirsOwn(t *testing.T) {
	p := newPool(t, 1, nil)
	own := map[string]string{
		"X-Real-IP": "127.0.0.1", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": host,
		"X-Forwarded-Port": fmt.Sprint(p.Addr.Port()), "X-Forwarded-Proto": "http", "X-Forwarded-Scheme": "http",
		"X-Scheme": "http", "X-Original-Forwarded-For": "", "Host": host,
	}
	wantFields(t, p.received(t), own)
	own["X-Original-Forwarded-For"] = "6.6.6.6"
	wantFields(t, p.received(t, claims...), own)
	own["X-Original-Forwarded-For"] = "6.6.6.6, 6.6.6.9"
	wantFields(t, p.received(t, append(claims, "X-Forwarded-For: 6.6.6.9")...), own)
}

func TestForwardedHostIsTheHostAsTheClientWroteIt(t *testing.T) {
	p := newPool(t, 1, nil)
	const written = "A.Example.Test:8443"
	rig.Do(t, p.Addr, "GET", rig.Get(written, "/"))
	wantFields(t, p.backends[0].Last(t), map[string]string{"X-Forwarded-Host": written, "Host": written})
}

// TestProxyIsRemoved: a CGI would take it for HTTP_PROXY (CVE-2016-5385).
func TestProxyIsRemoved(t *testing.T) {
	p := newPool(t, 1, nil)
	wantFields(t, p.received(t, "pRoXy: http://evil.test", "X-Proxy: kept"), map[string]string{"Proxy": "", "X-Proxy": "kept"})
}

// TestTheClientBehindTrustedProxies: the last address that no trusted proxy has,
// over all lines of X-Forwarded-For as one list (RFC 9110, 5.3).
func TestTheClientBehindTrustedProxies(t *testing.T) {
	p := newPool(t, 1, nil, "--trusted-proxy", "127.0.0.0/8")
	for _, c := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"no field", nil, "127.0.0.1"},
		{"one address", []string{"1.2.3.4"}, "1.2.3.4"},
		{"an invented one before it", []string{"6.6.6.6, 1.2.3.4"}, "1.2.3.4"},
		{"trusted ones behind it", []string{"6.6.6.6, 1.2.3.4, 127.0.0.8,127.0.0.9"}, "1.2.3.4"},
		{"two lines", []string{"6.6.6.6", "1.2.3.4"}, "1.2.3.4"},
		{"the last line is trusted", []string{"6.6.6.6, 1.2.3.4", "127.0.0.8"}, "1.2.3.4"},
		{"three lines", []string{"6.6.6.6", "6.6.6.7, 1.2.3.4", "127.0.0.8, 127.0.0.9"}, "1.2.3.4"},
		{"all are trusted", []string{"127.0.0.7, 127.0.0.8", "127.0.0.9"}, "127.0.0.7"},
		{"a port", []string{"6.6.6.6, 1.2.3.4:5678"}, "1.2.3.4"},
		{"a trusted one with a port", []string{"1.2.3.4, 127.0.0.8:99"}, "1.2.3.4"},
		{"IPv6", []string{"6.6.6.6, 2001:db8::5"}, "2001:db8::5"},
		{"IPv6 with a port", []string{"6.6.6.6, [::1]:7"}, "::1"},
		{"IPv4 in IPv6", []string{"1.2.3.4, ::ffff:127.0.0.8"}, "1.2.3.4"},
		{"no address", []string{"1.2.3.4, unknown"}, "127.0.0.1"},
		{"no address before a trusted one", []string{"1.2.3.4, unknown, 127.0.0.8"}, "127.0.0.8"},
		// RFC 9110, 5.6.1: blanks on both sides of a comma, and empty elements.
		{"blanks before a comma", []string{"6.6.6.6, 1.2.3.4 \t, 127.0.0.8"}, "1.2.3.4"},
		{"an empty element", []string{"6.6.6.6, 1.2.3.4,, 127.0.0.8"}, "1.2.3.4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var fields []string
			for _, line := range c.lines {
				fields = append(fields, "X-Forwarded-For: "+line)
			}
			wantFields(t, p.received(t, fields...), map[string]string{
				"X-Real-IP": c.want, "X-Forwarded-For": c.want, "X-Original-Forwarded-For": strings.Join(c.lines, ", ")})
		})
	}
}

func TestATrustedProxysFieldsArePassedOn(t *testing.T) {
	p := newPool(t, 1, nil, "--trusted-proxy", "127.0.0.0/8")
	wantFields(t, p.received(t, "X-Forwarded-Proto: https", "X-Forwarded-Host: shop.test:8443", "X-Forwarded-Port: 8443"),
		map[string]string{"X-Forwarded-Proto": "https", "X-Forwarded-Scheme": "https", "X-Scheme": "https",
			"X-Forwarded-Host": "shop.test:8443", "X-Forwarded-Port": "8443", "Host": host})
}

// TestTrustEndsAtTheNetwork: a peer outside --trusted-proxy is not believed.
func TestTrustEndsAtTheNetwork(t *testing.T) {
	p := newPool(t, 1, nil, "--trusted-proxy", "127.0.0.8/29")
	wantFields(t, p.received(t, claims...), map[string]string{
		"X-Real-IP": "127.0.0.1", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": host})
}

func TestAppendForwardedFor(t *testing.T) {
	p := newPool(t, 1, nil, "--append-forwarded-for")
	wantFields(t, p.received(t), map[string]string{"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1"})
	wantFields(t, p.received(t, "X-Forwarded-For: 6.6.6.6"),
		map[string]string{"X-Forwarded-For": "6.6.6.6, 127.0.0.1", "X-Real-IP": "127.0.0.1"})
	wantFields(t, p.received(t, "X-Forwarded-For: 6.6.6.6, 6.6.6.7", "X-Forwarded-For: 6.6.6.8"),
		map[string]string{"X-Forwarded-For": "6.6.6.6, 6.6.6.7, 6.6.6.8, 127.0.0.1", "X-Real-IP": "127.0.0.1"})
}

func TestAppendForwardedForBehindATrustedProxy(t *testing.T) {
	p := newPool(t, 1, nil, "--append-forwarded-for", "--trusted-proxy", "127.0.0.0/8")
	wantFields(t, p.received(t, "X-Forwarded-For: 6.6.6.6, 1.2.3.4"),
		map[string]string{"X-Forwarded-For": "6.6.6.6, 1.2.3.4, 127.0.0.1", "X-Real-IP": "1.2.3.4"})
}

// TestFieldsWithUnderscores: X_Real_IP is X-Real-IP to a CGI, so such fields are
// dropped unless they are asked for.
func TestFieldsWithUnderscores(t *testing.T) {
	for _, c := range []struct {
		flags []string
		want  string
	}{{nil, ""}, {[]string{"--underscores-in-headers"}, "1"}} {
		p := newPool(t, 1, nil, c.flags...)
		wantFields(t, p.received(t, "X_Under_Score: 1", "X-Dash: 2"), map[string]string{"X_Under_Score": c.want, "X-Dash": "2"})
	}
}
