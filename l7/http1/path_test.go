package http1

import (
	"fmt"
	"strings"
	"testing"
)

var paths = []struct{ name, in, want string }{
	{"nothing to do", "/a/b", "/a/b"},
	{"root", "/", "/"},
	{"trailing slash", "/a/", "/a/"},
	{"merge", "//a///b//", "/a/b/"},
	{"only slashes", "////", "/"},
	{"current", "/./a/./b", "/a/b rewritten"},
	{"current at the end", "/a/.", "/a/ rewritten"},
	{"only current", "/.", "/ rewritten"},
	{"parent", "/a/b/../c", "/a/c rewritten"},
	{"parent at the end", "/a/b/..", "/a/ rewritten"},
	{"parent and slash at the end", "/a/b/../", "/a/ rewritten"},
	{"parent to the root", "/a/..", "/ rewritten"},
	{"parent to the root and on", "/a/../b", "/b rewritten"},
	{"parents", "/a/b/c/../../d", "/a/d rewritten"},
	{"parent after merged slashes", "/a//../b", "/b rewritten"},
	{"above the root", "/..", "400 path_above_root"},
	{"above the root, slash", "/../", "400 path_above_root"},
	{"above the root later", "/a/../../b", "400 path_above_root"},
	{"above the root over empty segments", "/a//../..", "400 path_above_root"},
	{"encoded dots", "/a/%2e%2E/b/%2e/c", "/b/c rewritten"},
	{"half encoded dots", "/a/.%2e/b", "/b rewritten"},
	{"names with dots", "/.a/..b/c./d../.../.well-known", "/.a/..b/c./d../.../.well-known"},
	{"unreserved decoded", "/%41%7a%30%2D%2e%5F%7E", "/Az0-._~"},
	{"reserved kept in capitals", "/%2f%3f%3a%c3%a4%20%25", "/%2F%3F%3A%C3%A4%20%25"},
	{"decoded once only", "/%252e%252e/%2561", "/%252e%252e/%2561"},
	{"cut escape", "/%4", "400 bad_escape"},
	{"bare percent", "/a%", "400 bad_escape"},
	{"escape over a slash", "/%4/1", "400 bad_escape"},
	{"not hex", "/%g0", "400 bad_escape"},
	{"not hex, second digit", "/%0g", "400 bad_escape"},
	{"escape between others", "/%%34%31", "400 bad_escape"},
	{"encoded NUL", "/%00", "400 bad_escape"},
	{"encoded slash stays", "/a%2Fb/c", "/a%2Fb/c"},
	{"backslash is escaped", `/a\b/%5cc`, `/a%5Cb/%5Cc`},
	{"parent removes a segment with an encoded slash", "/a%2Fb/../c", "/c rewritten"},
	{"hidden parent before", "/a/..%2fb", "400 hidden_dot_segment"},
	{"hidden parent after", "/a%2f../b", "400 hidden_dot_segment"},
	{"hidden parent between", "/a%2f..%5cb", "400 hidden_dot_segment"},
	{"hidden parent, encoded", "/a/%2e%2e%2fb", "400 hidden_dot_segment"},
	{"hidden parent before an encoded backslash", "/a/..%5cb", "400 hidden_dot_segment"},
	{"hidden parent by backslash", `/a/..\b`, "400 hidden_dot_segment"},
	{"hidden parent after backslash", `/a\..`, "400 hidden_dot_segment"},
	{"no parent between", `/a%2f...%5c..b\.`, `/a%2F...%5C..b%5C.`},
}

// normalOf is normalize of a path that stands in a request.
func normalOf(path string) string {
	r, n, err := parseRequest(wire("GET "+path+" HTTP/1.1", "Host: a"), &Limits{1 << 20, 1 << 20, 10})
	if err != nil {
		return outcome(n, err)
	}
	if r.Rewritten {
		return string(r.Path) + " rewritten"
	}
	return string(r.Path)
}

func TestPathIsNormalised(t *testing.T) {
	for _, c := range paths {
		t.Run(c.name, func(t *testing.T) {
			if got := normalOf(c.in); got != c.want {
				t.Errorf("normal form of %q = %q, want %q", c.in, got, c.want)
			}
			if got := slowNormal(c.in); got != c.want {
				t.Errorf("reference for %q = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

// slowNormal says the same as normalOf, in the most obvious way.
func slowNormal(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if strings.ContainsRune("\"<>\\^`{|}", rune(path[i])) {
			fmt.Fprintf(&b, "%%%02X", path[i])
			continue
		}
		if path[i] != '%' {
			b.WriteByte(path[i])
			continue
		}
		var c byte
		if i+3 > len(path) || strings.Trim(path[i+1:i+3], "0123456789abcdefABCDEF") != "" {
			return "400 bad_escape"
		}
		if fmt.Sscanf(path[i+1:i+3], "%x", &c); c == 0 {
			return "400 bad_escape"
		}
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~", rune(c)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
		i += 2
	}
	var kept []string
	rewritten, last := "", ""
	for _, segment := range strings.Split(b.String(), "/") {
		last = segment
		switch segment {
		case "":
		case ".":
			rewritten = " rewritten"
		case "..":
			rewritten = " rewritten"
			if len(kept) == 0 {
				return "400 path_above_root"
			}
			kept = kept[:len(kept)-1]
		default:
			parts := strings.NewReplacer("%2F", "/", "%5C", "/", `\`, "/").Replace(segment)
			if strings.Contains("/"+parts+"/", "/../") {
				return "400 hidden_dot_segment"
			}
			kept = append(kept, segment)
		}
	}
	out := "/" + strings.Join(kept, "/")
	if len(kept) > 0 && (last == "" || last == "." || last == "..") {
		out += "/"
	}
	return out + rewritten
}
