package k8s

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weirproxy/weir/l7/route"
)

// pathBytesMax bounds a rule's path: the longest request line is 16 KiB.
const pathBytesMax = 8 << 10

// normalPath returns path in the normal form in which requests are compared:
// escaped unreserved bytes are decoded, what may not stand in a path is escaped,
// and escapes are upper case (RFC 3986, 6.2.2). "" becomes "/".
//
// The error says why no normalised request can be meant by the path.
func normalPath(path string) (string, error) {
	if path == "" {
		return "/", nil
	}
	switch {
	case path[0] != '/':
		return "", errors.New("does not start with '/'")
	case len(path) > pathBytesMax:
		return "", fmt.Errorf("is longer than %d bytes", pathBytesMax)
	}
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c < 0x20 || c == 0x7f:
			return "", fmt.Errorf("has a control character at byte %d", i)
		case c == '?' || c == '#':
			return "", fmt.Errorf("has %q, which never is part of a request's path", c)
		case c == '%':
			v, ok := unescape(path[i+1:])
			if !ok {
				return "", fmt.Errorf("has '%%' without two hexadecimal digits at byte %d", i)
			}
			i += 2
			if unreserved(v) {
				b.WriteByte(v)
			} else {
				fmt.Fprintf(&b, "%%%02X", v)
			}
		case c > 0x7e || strings.IndexByte(" \"<>\\^`{|}", c) >= 0:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	normal := b.String()
	if strings.Contains(normal, "//") {
		return "", errors.New("has an empty segment (\"//\"), which requests are compared without")
	}
	for segment := range strings.SplitSeq(normal, "/") {
		if segment == "." || segment == ".." {
			return "", fmt.Errorf("has the segment %q, which requests are compared without", segment)
		}
	}
	return normal, nil
}

// unescape returns the byte that the two hexadecimal digits at the start of s
// stand for; ok is false if they aren't there.
func unescape(s string) (byte, bool) {
	if len(s) < 2 {
		return 0, false
	}
	high, low := strings.IndexByte(hexDigits, s[0]|0x20), strings.IndexByte(hexDigits, s[1]|0x20)
	if high < 0 || low < 0 || s[0] < '0' || s[1] < '0' {
		return 0, false
	}
	return byte(high<<4 | low), true
}

const hexDigits = "0123456789abcdef"

// unreserved is RFC 3986, 2.3.
func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// pathKey is equal for two paths if every request that one matches the other
// matches too.
type pathKey struct {
	kind route.PathKind
	path string
}

func keyOf(kind route.PathKind, path string) pathKey {
	if kind == route.Prefix {
		path = strings.Trim(path, "/")
	}
	return pathKey{kind, path}
}

// regexBytes are those that make a path a regular expression; '.' alone is too
// common in plain paths.
const regexBytes = `\^$|?*+()[]{}`

// literalPrefix returns the whole segments that every match of the regular
// expression path starts with: the part of the host that it may be meant for.
func literalPrefix(path string) string {
	i := strings.IndexAny(path, regexBytes)
	if i < 0 {
		return path
	}
	literal, rest := path[:i], path[i:]
	if !strings.HasPrefix(rest, "(/") { // "/api(/|$)(.*)" means all of /api
		literal = literal[:strings.LastIndexByte(literal, '/')+1]
	}
	if literal == "" {
		return "/"
	}
	return literal
}
