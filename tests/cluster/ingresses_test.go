package cluster

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/tests/pods"
	"github.com/weirproxy/weir/tests/rig"
)

// What a churn of Ingresses may cost.
const (
	steadyIngresses = 1000
	churnEvery      = 500 * time.Millisecond
	churnShort      = 40 * time.Second
	churnLong       = 10 * time.Minute // with WEIR_LONG=1
	churnGrowthMax  = 0.05             // of memory, in the last three quarters of the long time
	shortGrowthMax  = 0.15             // of the short one: the heap still settles
	churnTunnels    = 20
	churnStreams    = 5
)

// TestIngressesComeAndGoBesideLiveConnections adds and removes an Ingress again and
// again beside a thousand others: no request of these fails, tunnels and streams
// that were opened before go on, and memory does not grow.
func TestIngressesComeAndGoBesideLiveConnections(t *testing.T) {
	w := newWorldAlone(t)
	var err error
	w.ground, err = pods.NewNode(pods.Routed, t.TempDir())
	w.must(err)
	pod, err := w.ground.Add()
	w.must(err)
	t.Cleanup(pod.Remove)
	backend, err := pod.Serve()
	w.must(err)
	t.Cleanup(backend.Kill)
	w.must(w.written("a", pod.Addr.String()))
	w.parallel(steadyIngresses, func(i int) error {
		o := w.ingress(w.ns, fmt.Sprintf("steady-%d", i), fmt.Sprintf("g%d.test", i), "a")
		_, err := w.client.NetworkingV1().Ingresses(w.ns).Create(w.ctx, o, metav1.CreateOptions{})
		return err
	})
	a := w.startAgent("--update-status=false")

	var tunnels []*rig.Client
	for n := range churnTunnels {
		c := rig.Dial(t, a.Addr)
		c.Send(rig.Get(fmt.Sprintf("g%d.test", n), "/echo", "Connection: Upgrade", "Upgrade: echo"))
		if m := c.ReadHead(); m.Status != http.StatusSwitchingProtocols {
			t.Fatalf("upgrade: status %d", m.Status)
		}
		tunnels = append(tunnels, c)
	}
	var streams []*stream
	for n := range churnStreams {
		streams = append(streams, a.stream(t, fmt.Sprintf("g%d.test", n)))
	}
	load := (&rig.Pulse{Addr: a.Addr, Host: "g7.test", Target: "/", Rate: 100, Within: 5 * time.Second}).Start()

	lasts, growthMax := churnShort, shortGrowthMax
	if long() {
		lasts, growthMax = churnLong, churnGrowthMax
	}
	version := a.TableVersion()
	var early int64           // resident bytes at a quarter of the time
	var slowest time.Duration // echo of a tunnel
	begun := time.Now()
	changes := 0
	for tick := time.NewTicker(churnEvery); time.Since(begun) < lasts; changes++ {
		<-tick.C
		w.toggle(a, changes)
		for n, c := range tunnels {
			word := fmt.Sprintf("%d-%d\n", n, changes)
			c.Send(word)
			sent := time.Now()
			w.must(c.SetReadDeadline(sent.Add(rig.Deadline)))
			if got, err := c.Reader().(*bufio.Reader).ReadString('\n'); got != word || err != nil {
				t.Fatalf("tunnel %d after %v: read %q, %v; want %q", n, time.Since(begun), got, err, word)
			}
			slowest = max(slowest, time.Since(sent))
		}
		if early == 0 && time.Since(begun) > lasts/4 {
			early = a.MustRSS()
		}
	}
	late := a.MustRSS()
	for n, s := range streams {
		if err := s.stop(); err != nil {
			t.Errorf("stream %d: %v", n, err)
		}
	}
	shots := load.Stop()
	for _, s := range rig.Failed(shots, 200) {
		t.Errorf("failed: %v", s)
	}
	growth := float64(late)/float64(early) - 1
	t.Logf("%d changes, %d requests, resident %.1f MiB, later %.1f MiB (%+.1f %%), slowest echo %v", changes, len(shots),
		float64(early)/(1<<20), float64(late)/(1<<20), 100*growth, slowest.Round(time.Millisecond))
	if swaps := a.TableVersion() - version; swaps < uint64(changes) {
		t.Errorf("%d new tables for %d changes", swaps, changes)
	}
	if growth >= growthMax {
		t.Errorf("resident memory grew by %.1f %%, want less than %.0f %%", 100*growth, 100*growthMax)
	}
}

// toggle makes an Ingress, or removes it again, and waits until that shows.
func (w *world) toggle(a *agent, n int) {
	w.t.Helper()
	want := http.StatusOK
	ingresses := w.client.NetworkingV1().Ingresses(w.ns)
	if n%2 == 0 {
		w.addIngress(w.ingress(w.ns, "extra", "extra.test", "a"))
	} else {
		w.must(ingresses.Delete(w.ctx, "extra", metav1.DeleteOptions{}))
		want = http.StatusNotFound
	}
	w.within(2*time.Second, "change", func() error {
		m, err := rig.TryGet(a.Addr, "extra.test", "/")
		if err == nil && m.Status != want {
			err = fmt.Errorf("status %d, want %d", m.Status, want)
		}
		return err
	})
}

// stream reads the numbers that a pod sends, one each 100 ms.
type stream struct {
	body io.Closer
	end  chan struct{}
	done chan error
}

// stream opens one. It ends with the test.
func (a *agent) stream(t *testing.T, host string) *stream {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.Addr.String()+"/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("stream: %v, %v", answer, err)
	}
	s := &stream{body: answer.Body, end: make(chan struct{}), done: make(chan error, 1)}
	go func() { s.done <- s.read(answer.Body) }()
	return s
}

// read returns when stop is called, or with the reason why it broke.
func (s *stream) read(body io.Reader) error {
	lines := bufio.NewScanner(body)
	last := time.Now()
	for n := 0; lines.Scan(); n++ {
		if want := fmt.Sprint(n); lines.Text() != want {
			return fmt.Errorf("read %q, want %q", lines.Text(), want)
		}
		if gap := time.Since(last); gap > rig.Deadline {
			return fmt.Errorf("nothing for %v before %d", gap, n)
		}
		last = time.Now()
		select {
		case <-s.end:
			return nil
		default:
		}
	}
	return cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
}

// stop ends the stream, which must still flow.
func (s *stream) stop() error {
	defer s.body.Close()
	close(s.end)
	select {
	case err := <-s.done:
		return err
	case <-time.After(rig.Deadline):
		return fmt.Errorf("nothing for %v", rig.Deadline)
	}
}
