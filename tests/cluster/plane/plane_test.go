package plane

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStartsAndRestarts(t *testing.T) {
	start := time.Now()
	p, err := Start(t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	t.Logf("ready after %v", time.Since(start).Round(time.Millisecond))
	list := func() error {
		_, err := p.Client().CoreV1().Namespaces().List(context.Background(), metav1.ListOptions{})
		return err
	}
	if err := list(); err != nil {
		t.Fatal(err)
	}
	p.StopAPI(true)
	if err := list(); err == nil {
		t.Error("the API server answers though it was killed")
	}
	start = time.Now()
	if err := p.StartAPI(); err != nil {
		t.Fatal(err)
	}
	t.Logf("ready again after %v", time.Since(start).Round(time.Millisecond))
	if err := list(); err != nil {
		t.Error(err)
	}
}
