package report

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/weirproxy/weir/k8s"
)

func name(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// logs keeps what is logged, one message each.
type logs struct {
	slog.Handler
	mu   sync.Mutex
	list []string
}

func newLogs() *logs { return &logs{Handler: slog.DiscardHandler} }

func (l *logs) Enabled(context.Context, slog.Level) bool { return true }

func (l *logs) Handle(_ context.Context, r slog.Record) error {
	text := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, text)
	return nil
}

func (l *logs) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.list...)
}

// reporting is a Reporter that runs.
type reporting struct {
	*Reporter
	stop context.CancelFunc
	done chan struct{}
	logs *logs
}

// start runs a reporter of agent against c; it is stopped at the end of the test.
func start(t *testing.T, c *cluster, agent string, edit func(*Config)) *reporting {
	t.Helper()
	return startBy(t, c, c, agent, edit)
}

// startBy is start with requests that go by another way to c.
func startBy(t *testing.T, by api, c *cluster, agent string, edit func(*Config)) *reporting {
	t.Helper()
	l := newLogs()
	config := Config{
		API: &rest.Config{}, Identity: agent, Namespace: "weir", Lease: "weir",
		Publish: Publish{Status: true, Addresses: []string{"192.0.2.1"}}, Logger: slog.New(l),
	}
	if edit != nil {
		edit(&config)
	}
	config, err := config.complete()
	if err != nil {
		t.Fatal(err)
	}
	r := &reporting{Reporter: newReporter(config, by), done: make(chan struct{}), logs: l}
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	go func() {
		defer close(r.done)
		if err := r.Run(ctx, c); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	}()
	t.Cleanup(func() { r.Kill(); r.end() })
	return r
}

// end stops r and waits for it.
func (r *reporting) end() {
	r.stop()
	<-r.done
}

// after lets d pass and everything that is due then happen.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// bubble runs f in a bubble with a cluster of its own.
func bubble(t *testing.T, f func(t *testing.T, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newCluster()) })
}

// refusal is a notice on an Ingress.
func refusal(namespace, name, message string) k8s.Notice {
	return k8s.Notice{Severity: k8s.Error, Kind: "Ingress", Namespace: namespace, Name: name,
		Field: "spec.rules", Reason: "HostAlreadyClaimed", Message: message, Remedy: "use another host"}
}

// Short names for the signatures of stand-ins.
type (
	ctx   = context.Context
	lease = coordinationv1.Lease
)
