package http1

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

var hosts = []struct{ name, in, want string }{
	{"name", "a.example", "a.example -1"},
	{"capitals", "A.eXample", "a.example -1"},
	{"port", "a:8080", "a 8080"},
	{"leading zeros of a port", "a:00080", "a 80"},
	{"largest port", "a:65535", "a 65535"},
	{"trailing dot", "A.:80", "a 80"},
	{"empty", "", " -1"},
	{"IPv4", "192.0.2.1:80", "192.0.2.1 80"},
	{"all of a reg-name", "a-._~!$&'()*+,;=9", "a-._~!$&'()*+,;=9 -1"},
	{"IPv6", "[2001:DB8::a]", "[2001:db8::a] -1"},
	{"IPv6 with port", "[::1]:80", "[::1] 80"},
	{"IPv6 with IPv4", "[::ffff:192.0.2.1]", "[::ffff:192.0.2.1] -1"},

	{"port too large", "a:65536", "bad"},
	{"port too long", "a:000080", "bad"},
	{"port empty", "a:", "bad"},
	{"port of letters", "a:http", "bad"},
	{"port signed", "a:+80", "bad"},
	{"port without host", ":80", "bad"},
	{"two ports", "a:80:80", "bad"},
	{"only a dot", ".", "bad"},
	{"two trailing dots", "a..", "bad"},
	{"brace", "a{b", "bad"},
	{"at sign", "a@b", "bad"},
	{"slash", "a/b", "bad"},
	{"backslash", `a\b`, "bad"},
	{"query", "a?b", "bad"},
	{"escape", "a%41", "bad"},
	{"space", "a b", "bad"},
	{"underscored is a name", "a_b", "a_b -1"},
	{"high byte", "a\xff", "bad"},
	{"quote", `"a"`, "bad"},
	{"IPv6 without brackets", "::1", "bad"},
	{"IPv6 unclosed", "[::1", "bad"},
	{"IPv6 and a tail", "[::1]a", "bad"},
	{"IPv6 and a dot", "[::1].", "bad"},
	{"IPv6 empty", "[]", "bad"},
	{"IPv6 with zone", "[fe80::1%25eth0]", "bad"},
	{"IPvFuture", "[v1.a]", "bad"},
	{"IPv4 in brackets", "[192.0.2.1]", "bad"},
	{"bracket later", "a[::1]", "bad"},
}

func hostOf(s string) string {
	a, _, good := parseAuthority([]byte(s), nil)
	if !good {
		return "bad"
	}
	return fmt.Sprintf("%s %d", a.host, a.port)
}

func TestHost(t *testing.T) {
	for _, c := range hosts {
		if got := hostOf(c.in); got != c.want {
			t.Errorf("%s: host of %q = %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

var addresses = []string{
	"::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::8", "ABCD:ef01::",
	"1:2:3:4:5:6:1.2.3.4", "::1.2.3.4", "1:2:3:4:5::1.2.3.4", "1:2:3:4:5:6::1.2.3.4", "::ffff:255.255.255.255",
	"", ":", ":::", "1", "1:", ":1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "1::2::3", "::1:",
	"12345::", "g::", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3", "::1.2.3.4.5", "::1.2.3.256", "::01.2.3.4", "::1.2.3.4:5",
	"1.2.3.4", "1.2.3.4::", "::%1", "::1 ", "1:2:3:4:5:6:7:8:", "::.1.2.3", "::1.2..3", "1:2:3:4:5:6:7::8",
}

func TestIPv6AddressesAsNetipSeesThem(t *testing.T) {
	for _, s := range addresses {
		addr, err := netip.ParseAddr(s)
		want := err == nil && addr.Is6() && addr.Zone() == ""
		if got := isIPv6([]byte(s)); got != want {
			t.Errorf("isIPv6(%q) = %v, want %v", s, got, want)
		}
	}
	if !isIPv6([]byte(strings.Repeat("0:", 7) + "0")) {
		t.Error("eight groups of zeros are an address")
	}
}

// slowHost says which host stands in s, "bad" if it is none, in the most obvious
// way.
func slowHost(s string) string {
	s = strings.ToLower(s)
	if rest, ok := strings.CutPrefix(s, "["); ok {
		address, port, ok := strings.Cut(rest, "]")
		addr, err := netip.ParseAddr(address)
		if !ok || err != nil || !addr.Is6() || addr.Zone() != "" || !slowPort(port) {
			return "bad"
		}
		return "[" + address + "]"
	}
	host, port := s, ""
	if i := strings.IndexByte(s, ':'); i >= 0 {
		host, port = s[:i], s[i:]
	}
	if strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=") != "" || !slowPort(port) || host == "" && port != "" {
		return "bad"
	}
	host = strings.TrimSuffix(host, ".")
	if host == "" && s != "" || strings.HasSuffix(host, ".") {
		return "bad"
	}
	return host
}

func slowPort(s string) bool {
	if s == "" {
		return true
	}
	n, err := strconv.ParseUint(s[1:], 10, 16)
	return s[0] == ':' && err == nil && n <= 65535 && len(s) <= 6
}
