package feature

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirproxy/weir/tests/rig"
)

func TestManifestsChangeUnderLoadWithoutAFailedRequest(t *testing.T) {
	w := newWorld(t)
	other := rig.NewRecorder(t, "b")
	w.Put(rig.Svc("t1", "b", other.Addr)...)
	p := (&rig.Pulse{Addr: w.Addr, Host: host, Target: "/", Rate: 300, Methods: []string{"GET", "POST"}}).Start()
	for i := range 30 {
		service := []string{"a", "b"}[i%2]
		w.Put(rig.Ingress("t1", "i", rig.R(host, "/", "Prefix", service)),
			rig.Ingress("t1", fmt.Sprintf("x%d", i), rig.R(fmt.Sprintf("x%d.example.test", i), "/", "Prefix", "a")))
		start := time.Now()
		rig.Eventually(t, rig.Deadline, "change in force", func() error {
			m, err := rig.TryGet(w.Addr, host, "/probe")
			if err == nil && string(m.Body) != service {
				err = fmt.Errorf("answer from %q, want %q", m.Body, service)
			}
			return err
		})
		if took := time.Since(start); took > time.Second {
			t.Errorf("change %d took %v", i, took)
		}
	}
	shots := p.Stop()
	if bad := rig.Failed(shots, 200); len(bad) != 0 {
		t.Errorf("%d of %d requests failed, first: %v", len(bad), len(shots), bad[0])
	}
	if len(shots) < 100 {
		t.Errorf("only %d requests were made", len(shots))
	}
}

func TestABrokenFileKeepsTheLastGoodVersion(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(w.Dir.Path, "ingress.t1.i.json")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, good[:len(good)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	rig.Eventually(t, rig.Deadline, "a notice", func() error {
		_, body, err := w.AdminGet("/debug/notices")
		if err == nil && !strings.Contains(body, "ingress.t1.i.json") {
			err = fmt.Errorf("the file is not named in %s", body)
		}
		return err
	})
	if m := rig.Do(t, w.Addr, "GET", rig.Get(host, "/")); m.Status != 200 {
		t.Errorf("while the file is broken -> %d, want 200", m.Status)
	}
}
