// Package kubelet stands in for the scheduler and for the kubelets of a few nodes:
// it gives pods a node, runs each as a process in a network namespace of its own,
// probes whether it is ready, restarts it when it ends, and terminates it as a
// kubelet does: SIGTERM, grace period, SIGKILL, and only then the object goes.
//
// All nodes are this machine. A pod runs the backend of package pods, with the
// environment of its first container; images are ignored. Restarts are delayed by
// a quarter of a second, doubled up to four: a kubelet's ten seconds to five
// minutes would make tests long.
//
// Less than a kubelet does: one container, probes for readiness by httpGet only and
// without initial delay. While the API server is away, a pod whose state changes
// waits until it has told so: it is neither probed nor restarted.
package kubelet

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/weirproxy/weir/tests/pods"
)

// Node is one that pods are put on.
type Node struct{ Name, Zone string }

// Kubelet runs pods until Stop.
type Kubelet struct {
	client kubernetes.Interface
	ground *pods.Node
	nodes  []Node
	report func(error)

	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	pods  map[types.UID]*pod
	next  int                  // node of the next pod
	asked map[string]time.Time // when the pod of an address got SIGTERM
}

// Start makes the Node objects and runs every pod that there is and that comes.
// report gets what goes wrong with one, from any goroutine, not with the API server:
// that is tried again.
func Start(client kubernetes.Interface, ground *pods.Node, nodes []Node, report func(error)) (*Kubelet, error) {
	ctx, cancel := context.WithCancel(context.Background())
	k := &Kubelet{client: client, ground: ground, nodes: nodes, report: report, cancel: cancel, pods: make(map[types.UID]*pod), asked: make(map[string]time.Time)}
	for _, n := range nodes {
		if err := k.addNode(ctx, n); err != nil {
			cancel()
			return nil, err
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { k.seen(ctx, o.(*corev1.Pod)) },
		UpdateFunc: func(_, o any) { k.seen(ctx, o.(*corev1.Pod)) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			k.deleted(o.(*corev1.Pod).UID)
		},
	})
	if err != nil {
		cancel()
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("pods can't be listed")
	}
	k.running.Go(func() { <-ctx.Done(); factory.Shutdown() })
	return k, nil
}

// Stop ends all pods at once, without a word to the API server.
func (k *Kubelet) Stop() {
	k.cancel()
	k.running.Wait()
}

func (k *Kubelet) addNode(ctx context.Context, n Node) error {
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{
		corev1.LabelHostname: n.Name, corev1.LabelTopologyZone: n.Zone,
	}}}
	made, err := k.client.CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make node %s: %w", n.Name, err)
	}
	made.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.77.0.1"}}
	made.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	if _, err := k.client.CoreV1().Nodes().UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("status of node %s: %w", n.Name, err)
	}
	return nil
}

// seen takes a new version of a pod.
func (k *Kubelet) seen(ctx context.Context, object *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.pods[object.UID]
	if p == nil {
		if ctx.Err() != nil {
			return
		}
		node := object.Spec.NodeName
		if node == "" {
			node = k.nodes[k.next%len(k.nodes)].Name
			k.next++
		}
		p = &pod{k: k, object: object, node: node, changed: make(chan struct{}, 1), gone: make(chan struct{}), lost: make(chan struct{})}
		k.pods[object.UID] = p
		k.running.Go(func() { p.run(ctx) })
		return
	}
	p.mu.Lock()
	p.object = object
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (k *Kubelet) deleted(id types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.pods[id]; p != nil {
		close(p.gone)
		delete(k.pods, id)
	}
}

// Asked returns when each pod that was terminated got its SIGTERM, by its address.
func (k *Kubelet) Asked() map[string]time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.asked)
}

func (k *Kubelet) ask(p *pod) {
	k.mu.Lock()
	k.asked[p.ground.Addr.String()] = time.Now()
	k.mu.Unlock()
	p.process.Signal(syscall.SIGTERM)
}

// Lose makes a pod die with its node: its network goes without a word, its
// processes too, and nobody tells the API server.
func (k *Kubelet) Lose(namespace, name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		p.mu.Lock()
		match := p.object.Namespace == namespace && p.object.Name == name && p.ground != nil
		p.mu.Unlock()
		if match {
			// First the network: a process that ends closes its connections aloud.
			err := p.ground.Unplug()
			p.lose.Do(func() { close(p.lost) })
			return err
		}
	}
	return fmt.Errorf("pod %s/%s does not run", namespace, name)
}

// retry does f until it succeeds or ctx ends: the API server may be away.
func retry(ctx context.Context, f func() error) {
	for wait := 20 * time.Millisecond; f() != nil && ctx.Err() == nil; wait = min(2*wait, time.Second) {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}
