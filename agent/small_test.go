package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirproxy/weir/l7/route"
)

// Lines that are written while the file is reopened are all in one file or the
// other. So many turns, because only a close between two instructions shows.
func TestReopenLosesNoLine(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	l, err := openLogFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var writer sync.WaitGroup
	var over atomic.Bool
	lines := 0
	writer.Go(func() {
		for ; !over.Load(); lines++ {
			if n, err := l.Write([]byte("x\n")); n != 2 || err != nil {
				t.Errorf("Write = %d, %v", n, err)
				return
			}
		}
	})
	for i := range 20_000 {
		if i%2000 == 1 {
			if err := os.Rename(path, fmt.Sprint(path, i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.reopen(); err != nil {
			t.Fatal(err)
		}
	}
	over.Store(true)
	writer.Wait()
	if err := l.close(); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != 11 {
		t.Errorf("files %q, %v, want 11", files, err)
	}
	count := 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		count += bytes.Count(b, []byte("x\n"))
	}
	if count != lines {
		t.Errorf("%d lines in all files, want %d", count, lines)
	}
}

func TestReopenThatFailsKeepsTheOldFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := openLogFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := l.reopen(); err == nil {
		t.Error("reopen in a directory that is gone = nil, want an error")
	}
	if _, err := l.Write([]byte("still\n")); err != nil {
		t.Errorf("Write after a failed reopen: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir+".old", "log")); err != nil || string(b) != "still\n" {
		t.Errorf("the old file has %q, %v", b, err)
	}
	if err := l.close(); err != nil {
		t.Error(err)
	}
}

func TestPolicyView(t *testing.T) {
	p := route.Policy{
		ConnectTimeout: time.Second, SendTimeout: 2 * time.Second, ReadTimeout: time.Minute, TriesTimeout: 3 * time.Second,
		BodyBytesMax: 5, Tries: 2, Balance: route.Hash,
		RetryOn: route.RetryError | route.Retry503 | route.RetryNonIdempotent,
		HashBy: []route.HashPart{{Source: route.HashText, Name: "v1-"}, {Source: route.HashRemoteAddr}, {Source: route.HashHost},
			{Source: route.HashURI}, {Source: route.HashPath}, {Source: route.HashHeader, Name: "x-user-id"},
			{Source: route.HashCookie, Name: "sid"}, {Source: route.HashQuery, Name: "q"}},
	}
	v := policyView(&p)
	if want := "v1-$remote_addr$host$request_uri$uri$http_x_user_id$cookie_sid$arg_q"; v.HashBy != want {
		t.Errorf("HashBy = %q, want %q", v.HashBy, want)
	}
	if !slices.Equal(v.RetryOn, []string{"error", "http_503", "non_idempotent"}) || v.TriesTimeout != "3s" ||
		v.ReadTimeout != "1m0s" || v.Balance != "hash" || v.Tries != 2 || v.BodyBytesMax != 5 {
		t.Errorf("policyView = %+v", v)
	}
	if v := policyView(&route.Policy{Balance: route.EWMA, HashBy: p.HashBy}); v.HashBy != "" || v.TriesTimeout != "" || len(v.RetryOn) != 0 {
		t.Errorf("policyView without hash, deadline and retries = %+v", v)
	}
}

// Every condition has a name; a new one would be missing on the debug page.
func TestEveryRetryConditionHasAName(t *testing.T) {
	for bit := route.RetryError; bit <= route.RetryNonIdempotent; bit <<= 1 {
		if names := retryNames(bit); len(names) != 1 {
			t.Errorf("retryNames(%#x) = %q, want one name", bit, names)
		}
	}
}

func TestVersionIsStampedOrTakenFromTheBuild(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Version: "v0.2.0"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123abc"}, {Key: "vcs.modified", Value: "true"}}}
	for _, tt := range []struct {
		name        string
		in          Build
		info        *debug.BuildInfo
		wantVersion string
		wantCommit  string
	}{
		{"stamped", Build{Version: "v9", Commit: "fff"}, info, "v9", "fff"},
		{"from the build", Build{}, info, "v0.2.0", "0123abc+dirty"},
		{"no version control", Build{}, &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "", ""},
	} {
		b := tt.in
		b.fill(tt.info)
		if b.Version != tt.wantVersion || b.Commit != tt.wantCommit {
			t.Errorf("%s: %q %q, want %q %q", tt.name, b.Version, b.Commit, tt.wantVersion, tt.wantCommit)
		}
	}
	if b := Version("", ""); b.Version == "" || b.Commit == "" || b.Go == "" || !strings.HasPrefix(b.Platform, "linux/") {
		t.Errorf("Version = %+v, want all fields", b)
	}
}

func TestQuestionHead(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   Question
		want string // "" = an error
	}{
		{"whole", Question{Method: "GET", URL: "http://a.example:8080/x/../y?q=1"}, "GET /x/../y?q=1 HTTP/1.1\r\nHost: a.example:8080\r\n\r\n"},
		{"no scheme", Question{Method: "GET", URL: "a.example/x"}, "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n"},
		{"no path", Question{Method: "GET", URL: "HTTP://a.example"}, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"},
		{"query only", Question{Method: "GET", URL: "http://a.example?x=/"}, "GET /?x=/ HTTP/1.1\r\nHost: a.example\r\n\r\n"},
		{"fragment", Question{Method: "GET", URL: "http://a.example/x#y?z"}, "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n"},
		{"fields", Question{Method: "PUT", URL: "http://a.example/", Header: []string{"X-A: 1, 2", "x-b:3"}},
			"PUT / HTTP/1.1\r\nHost: a.example\r\nX-A: 1, 2\r\nx-b:3\r\n\r\n"},
		{"another host", Question{Method: "GET", URL: "http://127.0.0.1:8080/", Header: []string{"host: b.example"}},
			"GET / HTTP/1.1\r\nhost: b.example\r\n\r\n"},
		{"https", Question{Method: "GET", URL: "https://a.example/"}, ""},
		{"no method", Question{URL: "http://a.example/"}, ""},
		{"no URL", Question{Method: "GET"}, ""},
		{"no colon", Question{Method: "GET", URL: "http://a.example/", Header: []string{"X-A"}}, ""},
	} {
		got, err := tt.in.head()
		if (err != nil) != (tt.want == "") || string(got) != tt.want {
			t.Errorf("%s: head() = %q, %v, want %q", tt.name, got, err, tt.want)
		}
		if (tt.in.Check() != nil) != (err != nil) {
			t.Errorf("%s: Check and head disagree", tt.name)
		}
	}
}
