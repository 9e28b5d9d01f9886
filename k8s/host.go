package k8s

import (
	"errors"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// checkHost says why host can't be the host of a rule, or nil. "" is any host.
func checkHost(host string) error {
	if host == "" {
		return nil
	}
	name := strings.TrimPrefix(host, "*.")
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return errors.New("is an IP address; the Ingress API allows names only")
	}
	switch {
	case strings.Contains(host, ":"):
		return errors.New("has a port or scheme; rules apply to every port that Weir listens on")
	case host != strings.ToLower(host):
		return errors.New("is not lower case")
	case strings.HasSuffix(host, "."):
		return errors.New("ends with a dot")
	case strings.Contains(name, "*"):
		return errors.New("has '*' elsewhere than as its whole first label")
	case len(validation.IsDNS1123Subdomain(name)) != 0:
		return errors.New("is not a host name (RFC 1123)")
	}
	for label := range strings.SplitSeq(name, ".") {
		if len(label) > validation.DNS1123LabelMaxLength {
			return errors.New("has a label of more than 63 bytes (RFC 1123)")
		}
	}
	return nil
}

// wildcardOf returns the wildcard that covers the exact host, or "".
func wildcardOf(host string) string {
	if host == "" || strings.HasPrefix(host, "*.") {
		return ""
	}
	if _, suffix, ok := strings.Cut(host, "."); ok {
		return "*." + suffix
	}
	return ""
}
