package watch

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func TestConnectSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good", `{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}],
contexts: [{name: a, context: {cluster: c, user: u}}], users: [{name: u, user: {token: secret}}]}`)
	c, err := Connect(good)
	if err != nil || c.Host != "https://192.0.2.1:6443" || c.BearerToken != "secret" {
		t.Errorf("Connect = %+v, %v; want the server and token of the file", c, err)
	}
	for _, tt := range []struct{ name, path, says string }{
		{"no file", filepath.Join(dir, "none"), "none"},
		{"not YAML", write("bad", "a: [b"), "bad"},
		{"no cluster", write("empty", "{apiVersion: v1, kind: Config}"), "empty"},
		{"no pod", "", "--kubeconfig FILE"},
	} {
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
		if _, err := Connect(tt.path); err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: Connect = %v, want an error with %q", tt.name, err, tt.says)
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "192.0.2.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	if _, err := os.Stat("/var/run/secrets/kubernetes.io/serviceaccount/token"); err == nil {
		t.Log("this is a pod with a token")
	} else if _, err := Connect(""); err == nil || !strings.Contains(err.Error(), "service account token") {
		t.Errorf("Connect in a pod without token = %v, want that said", err)
	}
}

// A token that is replaced in its file, as kubelet does, is used once the old one is
// refused.
func TestATokenThatChangesIsReadAgain(t *testing.T) {
	a := newAPI(t)
	site(a)
	token := filepath.Join(t.TempDir(), "token")
	put := func(n int32) {
		t.Helper()
		if err := os.WriteFile(token+".new", fmt.Appendf(nil, "token-%d", n), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(token+".new", token); err != nil {
			t.Fatal(err)
		}
	}
	put(1)
	var valid, refused atomic.Int32
	valid.Store(1)
	a.answer = func(w http.ResponseWriter, c *call) bool {
		if c.Header.Get("Authorization") == fmt.Sprintf("Bearer token-%d", valid.Load()) {
			return false
		}
		refused.Add(1)
		status(w, 401, "Unauthorized", "expired token")
		return true
	}
	f := follow(t, a, func(c *Config) { c.API.BearerTokenFile = token })
	f.change(0)
	if refused.Load() != 0 {
		t.Errorf("%d requests were refused at first", refused.Load())
	}
	valid.Store(2)
	put(2)
	a.endWatches()
	a.put("endpointslices", slice("t1", "web-a", "web", "10.0.0.2"))
	eventually(t, "the slice, with the new token", func() bool { return f.slices() == "t1/web-a 10.0.0.2" })
	if refused.Load() == 0 {
		t.Error("the old token was not tried: the test shows nothing")
	}
}
