package k8s

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weirproxy/weir/l7/route"
)

// Bounds of a hash key: it is put together for every request.
const (
	hashKeyBytesMax = 1 << 10
	hashPartsMax    = 16
)

const hashVariables = "$remote_addr, $binary_remote_addr, $host, $http_host, $request_uri, $uri, " +
	"$http_NAME, $cookie_NAME, $arg_NAME and plain text"

// parseHashKey reads the value of upstream-hash-by: text and nginx variables,
// written $name or ${name}, one after the other.
func parseHashKey(s string) ([]route.HashPart, error) {
	if len(s) > hashKeyBytesMax {
		return nil, fmt.Errorf("longer than %d bytes", hashKeyBytesMax)
	}
	var parts []route.HashPart
	for s != "" {
		if s[0] != '$' {
			text, rest := s, ""
			if i := strings.IndexByte(s, '$'); i > 0 {
				text, rest = s[:i], s[i:]
			}
			parts, s = append(parts, route.HashPart{Source: route.HashText, Name: text}), rest
			continue
		}
		name, rest, err := cutVariable(s)
		if err != nil {
			return nil, err
		}
		part, ok := hashVariable(name)
		if !ok {
			return nil, fmt.Errorf("unknown variable $%s; known are %s", name, hashVariables)
		}
		parts, s = append(parts, part), rest
	}
	if len(parts) > hashPartsMax {
		return nil, fmt.Errorf("more than %d parts", hashPartsMax)
	}
	return parts, nil
}

// cutVariable splits s, which starts with '$', into the variable's name and
// what follows it.
func cutVariable(s string) (name, rest string, err error) {
	s = s[1:]
	if braced, ok := strings.CutPrefix(s, "{"); ok {
		name, rest, ok = strings.Cut(braced, "}")
		if !ok || name == "" || variableEnd(name) != len(name) {
			return "", "", errors.New("'${' without a variable's name and '}'")
		}
		return name, rest, nil
	}
	end := variableEnd(s)
	if end == 0 {
		return "", "", errors.New("'$' without a variable's name")
	}
	return s[:end], s[end:], nil
}

func variableEnd(s string) int {
	i := 0
	for i < len(s) && (s[i] == '_' || unreserved(s[i]) && s[i] != '-' && s[i] != '.' && s[i] != '~') {
		i++
	}
	return i
}

func hashVariable(name string) (route.HashPart, bool) {
	switch name {
	case "remote_addr", "binary_remote_addr":
		return route.HashPart{Source: route.HashRemoteAddr}, true
	case "host", "http_host":
		return route.HashPart{Source: route.HashHost}, true
	case "request_uri":
		return route.HashPart{Source: route.HashURI}, true
	case "uri":
		return route.HashPart{Source: route.HashPath}, true
	}
	for _, v := range []struct {
		prefix string
		source route.HashSource
	}{{"http_", route.HashHeader}, {"cookie_", route.HashCookie}, {"arg_", route.HashQuery}} {
		rest, ok := strings.CutPrefix(name, v.prefix)
		if !ok || rest == "" {
			continue
		}
		if v.source == route.HashHeader {
			rest = strings.ReplaceAll(strings.ToLower(rest), "_", "-")
		}
		return route.HashPart{Source: v.source, Name: rest}, true
	}
	return route.HashPart{}, false
}
