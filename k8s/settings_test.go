package k8s

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/l7/route"
)

func TestParseDuration(t *testing.T) {
	tests := []struct {
		text string
		want time.Duration
		ok   bool
	}{
		{"60", time.Minute, true},
		{"0", 0, true},
		{"60s", time.Minute, true},
		{"500ms", 500 * time.Millisecond, true},
		{"1m30s", 90 * time.Second, true},
		{"2d", 48 * time.Hour, true},
		{"", 0, false},
		{"-1", 0, false},
		{"1.5s", 0, false},
		{"s", 0, false},
		{"5x", 0, false},
		{"5 s", 0, false},
		{"99999999999999999999", 0, false},
		{"99999999d", 0, false},
		{"365d365d", 0, false},
	}
	for _, test := range tests {
		if got, ok := parseDuration(test.text); ok != test.ok || ok && got != test.want {
			t.Errorf("parseDuration(%q) = %v, %v, want %v, %v", test.text, got, ok, test.want, test.ok)
		}
	}
}

func TestSettings(t *testing.T) {
	tests := []struct {
		name, value string
		want        route.Policy
	}{
		{"proxy-body-size", "0", route.Policy{}},
		{"proxy-body-size", "8k", route.Policy{BodyBytesMax: 8 << 10}},
		{"proxy-body-size", "8M", route.Policy{BodyBytesMax: 8 << 20}},
		{"proxy-body-size", "2g", route.Policy{BodyBytesMax: 2 << 30}},
		{"load-balance", "ewma", route.Policy{Balance: route.EWMA}},
		{"proxy-next-upstream", "timeout  http_504 non_idempotent", route.Policy{RetryOn: route.RetryTimeout | route.Retry504 | route.RetryNonIdempotent}},
		{"proxy-next-upstream-tries", "7", route.Policy{Tries: 7}},
		{"upstream-hash-by", "$binary_remote_addr$host", route.Policy{HashBy: []route.HashPart{{Source: route.HashRemoteAddr}, {Source: route.HashHost}}}},
	}
	for _, test := range tests {
		var got route.Policy
		if err := settings[test.name](&got, test.value); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %q gives %+v, %v, want %+v", test.name, test.value, got, err, test.want)
		}
	}
	bad := map[string][]string{
		"proxy-body-size":       {"", "k", "-1", "8mb", "9999999999g", "1e3"},
		"proxy-connect-timeout": {"0", "0s", "", "366d", "5\n"},
		"proxy-next-upstream":   {"", "error,timeout", "http_418"},
		"upstream-hash-by":      {"$", "${host", "${}", "$http_", "$unknown", "a$", strings.Repeat("x", hashKeyBytesMax+1), strings.Repeat("$host", hashPartsMax+1), "a\x00"},
		"load-balance":          {"ip_hash", "EWMA"},
	}
	for name, values := range bad {
		for _, value := range values {
			if err := checkSetting(name, value); err == nil {
				t.Errorf("checkSetting(%q, %.40q) = nil, want an error", name, value)
			}
		}
	}
}

func TestHashKeyOfNginxVariables(t *testing.T) {
	got, err := parseHashKey("u=${arg_user}-$http_X_Tenant$cookie_Sid.$uri")
	want := []route.HashPart{
		{Source: route.HashText, Name: "u="}, {Source: route.HashQuery, Name: "user"}, {Source: route.HashText, Name: "-"},
		{Source: route.HashHeader, Name: "x-tenant"}, {Source: route.HashCookie, Name: "Sid"}, {Source: route.HashText, Name: "."}, {Source: route.HashPath},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("parseHashKey = %+v, %v, want %+v", got, err, want)
	}
}

// TestEveryStanceIsWhole holds the catalogues together: settings are settings in
// both, and what is not honoured says what holds instead.
func TestEveryStanceIsWhole(t *testing.T) {
	for _, c := range []map[string]stance{annotations, configKeys} {
		for name, s := range c {
			if _, is := settings[name]; is != (s.kind == setting) && name != "retry-non-idempotent" {
				t.Errorf("%s: in settings is %v, want %v", name, is, s.kind == setting)
			}
			if s.kind != setting && s.note == "" {
				t.Errorf("%s: no note", name)
			}
		}
	}
	if len(annotations) != 138 {
		t.Errorf("%d annotations, want the 138 of ingress-nginx 1.15.1", len(annotations))
	}
}

func TestNearestName(t *testing.T) {
	for name, want := range map[string]string{
		"proxy-read-timeuot": "proxy-read-timeout",
		"rewrite-targets":    "rewrite-target",
		"ssl-redirct":        "ssl-redirect",
		"zzzzzzzz":           "",
		"x":                  "",
	} {
		if got := nearest(name, annotations); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
