package cluster

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/tests/pods"
)

// A Service with many endpoints: 12 slices of as many as controllers put into one.
const (
	manySlices   = 12
	manyPerSlice = 100
)

// many is a Service whose slices are written by the test. All endpoints are one pod.
type many struct {
	w      *world
	slices [manySlices]*discoveryv1.EndpointSlice
}

// address of endpoint n of slice i.
func (m *many) address(i, n int) string { return fmt.Sprintf("10.88.%d.%d", i, n+1) }

// put writes slice i with endpoints at n(0), n(1) and so on, ready or not.
func (m *many) put(i int, ready bool, addresses ...string) {
	m.w.t.Helper()
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s-%d", i), Labels: map[string]string{
			discoveryv1.LabelServiceName: "s", discoveryv1.LabelManagedBy: "tests.weir.test"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(pods.Port))}},
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	}
	api := m.w.client.DiscoveryV1().EndpointSlices(m.w.ns)
	var err error
	if m.slices[i] == nil {
		m.slices[i], err = api.Create(m.w.ctx, s, metav1.CreateOptions{})
	} else {
		m.slices[i].Endpoints = s.Endpoints
		m.slices[i], err = api.Update(m.w.ctx, m.slices[i], metav1.UpdateOptions{})
	}
	m.w.must(err)
}

// drop removes slice i.
func (m *many) drop(i int) {
	m.w.t.Helper()
	m.w.must(m.w.client.DiscoveryV1().EndpointSlices(m.w.ns).Delete(m.w.ctx, m.slices[i].Name, metav1.DeleteOptions{}))
	m.slices[i] = nil
}

// all returns the addresses of slice i.
func (m *many) all(i int) (list []string) {
	for n := range manyPerSlice {
		list = append(list, m.address(i, n))
	}
	return list
}

// TestManyEndpointsInSeveralSlices: slices shrink, move endpoints among each other,
// go and come back under load. No request fails, endpoints of every slice serve, and
// those that left their slices serve no more.
func TestManyEndpointsInSeveralSlices(t *testing.T) {
	w := newWorld(t)
	var err error
	w.ground, err = pods.NewNode(pods.Routed, t.TempDir())
	w.must(err)
	pod, err := w.ground.Add()
	w.must(err)
	t.Cleanup(pod.Remove)
	w.must(pod.Own(netip.MustParsePrefix("10.88.0.0/20")))
	backend, err := pod.Serve()
	w.must(err)
	t.Cleanup(backend.Kill)
	_, err = w.client.CoreV1().Services(w.ns).Create(w.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
	w.must(err)
	m := &many{w: w}
	for i := range manySlices {
		m.put(i, true, m.all(i)...)
	}
	w.addIngress(w.ingress(w.ns, "i", "many.test", "s"))
	a := w.startAgent("--watch-namespace", w.ns, "--update-status=false")
	a.answers("many.test")

	load := a.load("many.test", func() map[string]time.Time { return nil })
	pause(4 * time.Second)
	start := time.Now()

	// Endpoints move from slice 0 to slice 1: for a moment they are in both, and not
	// ready in one.
	m.put(0, false, m.all(0)...)
	m.put(1, true, append(m.all(0), m.all(1)...)...)
	m.drop(0)
	pause(500 * time.Millisecond)
	// Most slices go, some emptied before, as fast as the API server takes it.
	for i := 2; i < manySlices; i++ {
		if i%2 == 0 {
			m.put(i, true)
		}
		m.drop(i)
	}
	gone := time.Now()
	pause(2 * time.Second)
	back := time.Now()
	for i := 2; i < manySlices; i++ {
		m.put(i, true, m.all(i)...)
	}
	pause(3 * time.Second)
	r := load.stop()
	w.judge(r, start, false)

	answered := make(map[string]int) // requests by address, in the first phase
	for _, s := range r.shots {
		at, err := netip.ParseAddrPort(s.Body)
		if err != nil {
			t.Errorf("answer: %v", s)
			continue
		}
		slice := int(at.Addr().As4()[2])
		switch {
		case s.Start.Before(start):
			answered[at.String()]++
		case s.Start.After(gone.Add(time.Second)) && s.Start.Before(back) && slice > 1:
			t.Errorf("answered by an endpoint that left a second before: %v", s)
		}
	}
	t.Logf("%d endpoints served in the first phase", len(answered))
	if len(answered) < manySlices*manyPerSlice/4 {
		t.Errorf("only %d of %d endpoints served", len(answered), manySlices*manyPerSlice)
	}
}
