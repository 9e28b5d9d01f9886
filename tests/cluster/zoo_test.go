package cluster

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/tests/pods"
	"github.com/weirproxy/weir/tests/rig"
)

const (
	zooGood = 1000 // good Ingresses, for hosts g0.test to g999.test
	zooBad  = 200  // bad objects, at least
	nginx   = "nginx.ingress.kubernetes.io/"
)

// zoo returns bad Ingresses that an API server takes. Each asks for something that
// Weir refuses for good. Those whose host a good one has are refused for that.
func (w *world) zoo(ns string) (all []*networkingv1.Ingress) {
	add := func(host string, change func(*networkingv1.Ingress)) {
		name := fmt.Sprintf("bad-%d", len(all))
		if host == "" {
			host = name + ".test"
		}
		o := w.ingress(ns, name, host, "a")
		change(o)
		all = append(all, o)
	}
	path := func(o *networkingv1.Ingress) *networkingv1.HTTPIngressPath { return &o.Spec.Rules[0].HTTP.Paths[0] }
	for n := range 80 { // somebody else's hosts
		add(fmt.Sprintf("g%d.test", n*7), func(o *networkingv1.Ingress) { path(o).Path = fmt.Sprintf("/%d", n%5) })
	}
	for n := range 20 {
		add("", func(o *networkingv1.Ingress) { path(o).Backend.Service.Name = fmt.Sprint("nosuch-", n) })
		add("", func(o *networkingv1.Ingress) { path(o).Backend.Service.Port.Number = int32(1000 + n) })
		add("", func(o *networkingv1.Ingress) {
			path(o).Backend.Service.Port = networkingv1.ServiceBackendPort{Name: fmt.Sprint("nosuch-", n)}
		})
		add("", func(o *networkingv1.Ingress) { path(o).Backend.Service.Name = "outside" })
		add("", func(o *networkingv1.Ingress) {
			path(o).Backend = networkingv1.IngressBackend{Resource: &corev1.TypedLocalObjectReference{Kind: "Bucket", Name: fmt.Sprint("b", n)}}
		})
	}
	for _, p := range []string{"/a/../..", "/%", "/%0", "/%zz", "/../x"} {
		add("", func(o *networkingv1.Ingress) {
			specific := networkingv1.PathTypeImplementationSpecific
			path(o).Path, path(o).PathType = p, &specific
		})
	}
	for _, a := range [][2]string{
		{"server-snippet", "}"}, {"configuration-snippet", "return 200;"}, {"auth-snippet", "deny all;"}, {"stream-snippet", "server {}"},
		{"proxy-body-size", "-1"}, {"proxy-body-size", "huge"}, {"proxy-read-timeout", "soon"}, {"proxy-send-timeout", "-5"},
		{"proxy-connect-timeout", "1e99"}, {"proxy-next-upstream", "always"}, {"proxy-next-upstream-tries", "-3"},
		{"load-balance", "\"; deny all;"}, {"upstream-hash-by", "$("}, {"nosuch", "x"}, {"proxy-body-sise", "1m"}, {"rewrite", "/"},
	} {
		add("", func(o *networkingv1.Ingress) { o.Annotations = map[string]string{nginx + a[0]: a[1]} })
	}
	add("", func(o *networkingv1.Ingress) { o.Annotations = map[string]string{"weir.io/nosuch": "x"} })
	return all
}

// TestBadObjectsAmongGoodOnes: what the good ones serve does not change while bad
// ones come and stay, and each bad one is told why it is refused, once.
func TestBadObjectsAmongGoodOnes(t *testing.T) {
	w := newWorldAlone(t)
	other := w.ns + "-zoo"
	w.namespace(other)
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
	w.parallel(zooGood, func(i int) error {
		o := w.ingress(w.ns, fmt.Sprintf("good-%d", i), fmt.Sprintf("g%d.test", i), "a")
		_, err := w.client.NetworkingV1().Ingresses(w.ns).Create(w.ctx, o, metav1.CreateOptions{})
		return err
	})
	w.addZooNode()
	a := w.startAgent("--node-name", w.ns, "--report-rate", "100", "--publish-address", "192.0.2.1")
	visits := a.visit(zooGood)

	pause(time.Second) // a host is the older object's, to the second
	bad := w.zoo(other)
	slices := w.badSlices(other)
	if n := len(bad) + len(slices); n < zooBad {
		t.Fatalf("%d bad objects, want %d or more", n, zooBad)
	}
	w.neighbours(other)
	w.parallel(len(slices), func(i int) error {
		_, err := w.client.DiscoveryV1().EndpointSlices(other).Create(w.ctx, slices[i], metav1.CreateOptions{})
		return err
	})
	w.parallel(len(bad), func(i int) error {
		_, err := w.client.NetworkingV1().Ingresses(other).Create(w.ctx, bad[i], metav1.CreateOptions{})
		return err
	})
	names := make(map[string]bool)
	for _, o := range bad {
		names[o.Name] = true
	}
	for _, s := range slices {
		names[s.Name] = true
	}
	w.toldOnce(other, names)
	w.eventually("two rounds of all hosts since", visits.twice())
	visits.stop(t)
	if list, err := w.client.EventsV1().Events(w.ns).List(w.ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("%d Events on good objects, %v; want none", len(list.Items), err)
	}
}

// neighbours makes the Services that the bad objects of a namespace name.
func (w *world) neighbours(ns string) {
	w.t.Helper()
	for _, s := range []corev1.ServiceSpec{
		{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 80}}},
		{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []corev1.ServicePort{{Port: 80}}},
	} {
		name := map[bool]string{true: "outside", false: "a"}[s.ExternalName != ""]
		_, err := w.client.CoreV1().Services(ns).Create(w.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: s}, metav1.CreateOptions{})
		w.must(err)
	}
}

// zooNode is the address of the agent's node.
const zooNode = "10.66.0.1"

// addZooNode makes the Node that the agent runs on, named as the world.
func (w *world) addZooNode() {
	w.t.Helper()
	node, err := w.client.CoreV1().Nodes().Create(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}, metav1.CreateOptions{})
	w.must(err)
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: zooNode}}
	_, err = w.client.CoreV1().Nodes().UpdateStatus(w.ctx, node, metav1.UpdateOptions{})
	w.must(err)
}

// badSlices lead to the node's kubelet, or to a name.
func (w *world) badSlices(ns string) (all []*discoveryv1.EndpointSlice) {
	for n := range 10 {
		s := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("slice-%d", n), Labels: map[string]string{
				discoveryv1.LabelServiceName: "a", discoveryv1.LabelManagedBy: "tests.weir.test"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{zooNode}}},
			Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(10250))}},
		}
		if n%2 == 1 {
			s.AddressType, s.Endpoints[0].Addresses = discoveryv1.AddressTypeFQDN, []string{"localhost.test"}
		}
		all = append(all, s)
	}
	return all
}

// toldOnce waits for an Event on each of names, and wants none twice.
func (w *world) toldOnce(ns string, names map[string]bool) {
	w.t.Helper()
	told := make(map[string]int)
	w.within(2*time.Minute, "an Event on each bad object", func() error {
		list, err := w.client.EventsV1().Events(ns).List(w.ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		clear(told)
		seen := make(map[string]bool)
		for _, e := range list.Items {
			seen[e.Regarding.Name] = true
			told[e.Regarding.Name+": "+e.Reason+": "+e.Note]++
		}
		missing := 0
		first := ""
		for name := range names {
			if !seen[name] {
				missing, first = missing+1, name
			}
		}
		if missing != 0 {
			return fmt.Errorf("none on %d of %d, such as %s", missing, len(names), first)
		}
		return nil
	})
	for what, n := range told {
		if n != 1 {
			w.t.Errorf("%d Events say %q, want one", n, what)
		}
	}
}

// visits asks for one host after the other, all the time.
type visits struct {
	end, done chan struct{}

	mu     sync.Mutex
	made   int
	hosts  int
	failed []rig.Shot
}

// visit asks for g0.test and so on. It does not wait.
func (a *agent) visit(hosts int) *visits {
	v := &visits{hosts: hosts, end: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(v.done)
		s := &rig.Session{Addr: a.Addr, Prefix: "visit"}
		defer s.Close()
		for n := 0; ; n++ {
			select {
			case <-v.end:
				return
			default:
			}
			s.Host = fmt.Sprintf("g%d.test", n%hosts)
			shot := s.Do("GET")
			v.mu.Lock()
			v.made++
			if shot.Err != nil || shot.Status != 200 {
				v.failed = append(v.failed, shot)
			}
			v.mu.Unlock()
		}
	}()
	return v
}

// twice returns a check whether all hosts were visited twice since this call.
func (v *visits) twice() func() error {
	count := func() int {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.made
	}
	begun := count()
	return func() error {
		if n := count() - begun; n < 2*v.hosts {
			return fmt.Errorf("%d visits of %d hosts", n, v.hosts)
		}
		return nil
	}
}

// stop ends the visits. None may have failed.
func (v *visits) stop(t *testing.T) {
	t.Helper()
	close(v.end)
	<-v.done
	for _, s := range v.failed[:min(10, len(v.failed))] {
		t.Errorf("failed: %v", s)
	}
	t.Logf("%d visits, %d failed", v.made, len(v.failed))
}
