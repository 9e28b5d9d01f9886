package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares what a command printed with testdata/<name>.out. Where the
// output names the manifests' directory, the file says DIR.
func golden(t *testing.T, name, got string) {
	t.Helper()
	dir, err := filepath.Abs("testdata/site")
	if err != nil {
		t.Fatal(err)
	}
	got = strings.ReplaceAll(strings.ReplaceAll(got, dir, "DIR"), "testdata/site", "DIR")
	path := filepath.Join("testdata", name+".out")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestExplain(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		code int
	}{
		{"explain-prefix", []string{"GET", "http://shop.example:8080/cart/../search?q=1"}, 0},
		{"explain-exact", []string{"GET", "http://127.0.0.1/cart", "-H", "Host: SHOP.example"}, 0},
		{"explain-no-endpoint", []string{"GET", "http://shop.example/cart/items/7"}, exitNo},
		{"explain-no-host", []string{"GET", "http://nobody.example/"}, exitNo},
		{"explain-refused", []string{"GET", "http://shop.example/a%00b"}, exitNo},
		{"explain-body-too-large", []string{"POST", "http://shop.example/", "-H", "Content-Length: 8193"}, exitNo},
		{"explain-body-fits", []string{"POST", "http://shop.example/", "-H", "Content-Length: 8192"}, 0},
		{"explain-wildcard", []string{"GET", "http://a.other.example/"}, exitNo},
		{"explain-json", []string{"GET", "http://shop.example/", "-o", "json"}, 0},
		{"explain-shared-hosts", []string{"GET", "http://shop.example/stolen", "--shared-hosts"}, exitNo},
	} {
		code, stdout, stderr := weir(append(append([]string{"explain"}, tt.args...), "--manifests", "testdata/site")...)
		if code != tt.code || stderr != "" {
			t.Errorf("%s: exit code %d, stderr %q, want %d and none", tt.name, code, stderr, tt.code)
		}
		golden(t, tt.name, stdout)
	}
}

func TestLint(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		code int
	}{
		{"lint", nil, exitNo},
		{"lint-json", []string{"-o", "json"}, exitNo},
	} {
		code, stdout, stderr := weir(append([]string{"lint", "--manifests", "testdata/site"}, tt.args...)...)
		if code != tt.code || stderr != "" {
			t.Errorf("%s: exit code %d, stderr %q, want %d and none", tt.name, code, stderr, tt.code)
		}
		golden(t, tt.name, stdout)
	}
}
