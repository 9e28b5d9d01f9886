package k8s

import (
	"strings"
	"testing"
)

func TestNormalPath(t *testing.T) {
	tests := []struct{ path, want, err string }{
		{"", "/", ""},
		{"/", "/", ""},
		{"/a/b/", "/a/b/", ""},
		{"/%61%2D%7e", "/a-~", ""},
		{"/a%2fb", "/a%2Fb", ""},
		{"/a b", "/a%20b", ""},
		{"/ü", "/%C3%BC", ""},
		{"/*", "/*", ""},
		{"/a;v=1,2", "/a;v=1,2", ""},
		{"/...", "/...", ""},
		{"a", "", "does not start"},
		{"/a//b", "", "empty segment"},
		{"//", "", "empty segment"},
		{"/./a", "", `segment "."`},
		{"/a/%2E%2e", "", `segment ".."`},
		{"/%4", "", "two hexadecimal digits"},
		{"/%\x10a", "", "two hexadecimal digits"},
		{"/%g0", "", "two hexadecimal digits"},
		{"/a\n", "", "control character"},
		{"/a?b", "", "'?'"},
		{"/a#b", "", "'#'"},
		{"/" + strings.Repeat("a", pathBytesMax), "", "longer"},
	}
	for _, test := range tests {
		got, err := normalPath(test.path)
		switch {
		case test.err == "" && (err != nil || got != test.want):
			t.Errorf("normalPath(%q) = %q, %v, want %q", test.path, got, err, test.want)
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("normalPath(%.40q) = %.40q, %v, want an error with %q", test.path, got, err, test.err)
		}
	}
}

func TestLiteralPrefix(t *testing.T) {
	for path, want := range map[string]string{
		"/api(/|$)(.*)":       "/api",
		"/api(/.*)?":          "/api",
		"/foo/bar/[A-Z]{3}":   "/foo/bar/",
		"/foo/ba.*":           "/foo/",
		"/(.*)":               "/",
		"/foo[0-9]":           "/",
		"^/foo":               "/",
		"/plain":              "/plain",
		"/a/b|/c":             "/a/",
		"/something(/|$)(.*)": "/something",
	} {
		if got := literalPrefix(path); got != want {
			t.Errorf("literalPrefix(%q) = %q, want %q", path, got, want)
		}
	}
}
