package cluster

import (
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/tests/cluster/plane"
	"github.com/weirproxy/weir/tests/pods"
	"github.com/weirproxy/weir/tests/rig"
)

// newWorldAlone has a control plane of its own, for tests that make so many objects
// that their removal would take longer than another start.
func newWorldAlone(t *testing.T) *world {
	t.Helper()
	pods.Need(t)
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("loopback: %v: %s", err, out)
	}
	p, err := plane.Start(t.TempDir(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	w := &world{Plane: p, t: t, ctx: t.Context(), client: p.Client(), ns: "big", class: "big"}
	w.namespace(w.ns)
	w.addClass(w.class)
	return w
}

// parallel calls f for 0 to n-1, a few at a time. f must not end the test.
func (w *world) parallel(n int, f func(i int) error) {
	w.t.Helper()
	var wg sync.WaitGroup
	next, failed := make(chan int), make(chan error, n)
	for range 16 {
		wg.Go(func() {
			for i := range next {
				if err := f(i); err != nil {
					failed <- err
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	if len(failed) != 0 {
		w.t.Fatalf("%d of %d: %v", len(failed), n, <-failed)
	}
}

// written makes a Service without selector and its slice, which has addrs.
func (w *world) written(name string, addrs ...string) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80}}}}
	if _, err := w.client.CoreV1().Services(w.ns).Create(w.ctx, service, metav1.CreateOptions{}); err != nil {
		return err
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-1", Labels: map[string]string{
			discoveryv1.LabelServiceName: name, discoveryv1.LabelManagedBy: "tests.weir.test"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(pods.Port))}},
	}
	for _, a := range addrs {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{a},
			Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, NodeName: new("node-" + a)})
	}
	_, err := w.client.DiscoveryV1().EndpointSlices(w.ns).Create(w.ctx, slice, metav1.CreateOptions{})
	return err
}

// What a start with many objects may cost.
const (
	startIngresses = 5002
	startEndpoints = 4 // of each but the first and the last: 20,002
	startTimeMax   = 10 * time.Second
	startBytesMax  = 150 << 20
)

// TestAColdStartWithManyObjectsIsQuick: an agent is ready within ten seconds, not
// before it knows every object, and stays small. What all of it serves is one pod;
// the first Ingress and the last have no other endpoint.
func TestAColdStartWithManyObjectsIsQuick(t *testing.T) {
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

	begun := time.Now()
	last := startIngresses - 1
	w.parallel(startIngresses, func(i int) error {
		var addrs []string
		for n := range startEndpoints {
			addrs = append(addrs, fmt.Sprintf("10.%d.%d.%d", 100+n, i/250, 1+i%250))
		}
		if i == 0 || i == last {
			addrs = []string{pod.Addr.String()}
		}
		name := fmt.Sprintf("n%d", i)
		if err := w.written(name, addrs...); err != nil {
			return err
		}
		_, err := w.client.NetworkingV1().Ingresses(w.ns).Create(w.ctx, w.ingress(w.ns, name, name+".test", name), metav1.CreateOptions{})
		return err
	})
	t.Logf("objects made in %v", time.Since(begun).Round(time.Second))

	begun = time.Now()
	a := w.launchAgent(w.Kubeconfig, "--update-status=false")
	a.AwaitReady()
	took := time.Since(begun)
	for _, i := range []int{0, last} { // no wait: ready means that all is served
		m, err := rig.TryGet(a.Addr, fmt.Sprintf("n%d.test", i), "/")
		if err != nil || m.Status != 200 {
			t.Errorf("n%d.test once ready: %+v, %v; want 200", i, m, err)
		}
	}
	if n := a.Metric("weir_table_ingresses"); n != startIngresses {
		t.Errorf("the table has %v Ingresses once ready, want %d", n, startIngresses)
	}
	pause(2 * time.Second)
	bytes := a.MustRSS()
	t.Logf("ready after %v; resident %d MiB", took.Round(10*time.Millisecond), bytes>>20)
	if took > startTimeMax {
		t.Errorf("ready after %v, want at most %v", took, startTimeMax)
	}
	if bytes > startBytesMax {
		t.Errorf("resident memory %d MiB, want at most %d", bytes>>20, startBytesMax>>20)
	}
}
