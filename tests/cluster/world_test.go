// Package cluster tests Weir against a real API server and real controllers. See
// README.md.
package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weirproxy/weir/tests/cluster/kubelet"
	"github.com/weirproxy/weir/tests/cluster/plane"
	"github.com/weirproxy/weir/tests/pods"
	"github.com/weirproxy/weir/tests/rig"
)

func TestMain(m *testing.M) {
	pods.Main(m, func() error { return plane.Build(os.Stderr) }, stopControl)
}

// control is the control plane that all tests share.
var control struct {
	once  sync.Once
	plane *plane.Plane
	err   error
	made  int // worlds so far
}

func startControl() {
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		control.err = fmt.Errorf("loopback: %w: %s", err, out)
		return
	}
	dir, err := os.MkdirTemp("", "weir-cluster-")
	if err != nil {
		control.err = err
		return
	}
	control.plane, control.err = plane.Start(dir, os.Stderr)
}

// stopControl ends the control plane and removes its files.
func stopControl() {
	if control.plane != nil {
		control.plane.Stop()
		os.RemoveAll(control.plane.Dir)
	}
}

// world is a cluster as one test sees it, with a namespace and an IngressClass of
// its own.
type world struct {
	*plane.Plane
	t      *testing.T
	ctx    context.Context // ends with the test
	client *kubernetes.Clientset
	ns     string
	class  string

	ground  *pods.Node // nil without nodes
	kubelet *kubelet.Kubelet
}

// newWorld needs root.
func newWorld(t *testing.T) *world {
	t.Helper()
	pods.Need(t)
	control.once.Do(startControl)
	if control.err != nil {
		t.Fatal(control.err)
	}
	control.made++
	w := &world{Plane: control.plane, t: t, ctx: t.Context(), client: control.plane.Client(), ns: fmt.Sprintf("t%d", control.made)}
	w.class = w.ns
	w.namespace(w.ns)
	w.addClass(w.class)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.Logs())
		}
	})
	return w
}

// namespace makes one that goes with the test.
func (w *world) namespace(name string, labels ...string) {
	w.t.Helper()
	o := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: pairs(labels)}}
	_, err := w.client.CoreV1().Namespaces().Create(w.ctx, o, metav1.CreateOptions{})
	w.must(err)
	w.t.Cleanup(func() {
		if err := w.client.CoreV1().Namespaces().Delete(background, name, metav1.DeleteOptions{}); err != nil {
			w.t.Error(err)
		}
	})
}

// pairs makes a map of key, value, key, value.
func pairs(list []string) map[string]string {
	m := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return m
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// addNodes runs the nodes of the cluster; pods of earlier tests have gone.
func (w *world) addNodes(n pods.Network, nodes ...kubelet.Node) {
	w.t.Helper()
	var err error
	w.ground, err = pods.NewNode(n, w.t.TempDir())
	w.must(err)
	w.t.Cleanup(func() {
		if err := w.ground.Close(); err != nil {
			w.t.Error(err)
		}
	})
	if len(nodes) == 0 {
		nodes = []kubelet.Node{{Name: w.ns + "-node", Zone: "zone-a"}}
	}
	w.kubelet, err = kubelet.Start(w.client, w.ground, nodes, func(err error) { w.t.Error(err) })
	w.must(err)
	w.t.Cleanup(func() {
		w.clear()
		w.kubelet.Stop()
		for _, n := range nodes {
			if err := w.client.CoreV1().Nodes().Delete(background, n.Name, metav1.DeleteOptions{}); err != nil {
				w.t.Error(err)
			}
		}
	})
}

// clear removes the workloads of the world's namespace and waits until their pods
// have gone: without nodes they never would.
func (w *world) clear() {
	all := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := w.client.AppsV1().Deployments(w.ns).DeleteCollection(background, all, metav1.ListOptions{}); err != nil {
		w.t.Error(err)
	}
	for end := time.Now().Add(waitMax); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err := w.client.CoreV1().Pods(w.ns).DeleteCollection(background, now, metav1.ListOptions{}); err != nil {
			w.t.Error(err)
			return
		}
		list, err := w.client.CoreV1().Pods(w.ns).List(background, metav1.ListOptions{})
		if err == nil && len(list.Items) == 0 {
			return
		}
	}
	w.t.Error("pods are left over")
}

// eventually polls check until it returns nil.
func (w *world) eventually(what string, check func() error) {
	w.t.Helper()
	w.within(30*time.Second, what, check)
}

func (w *world) within(d time.Duration, what string, check func() error) {
	w.t.Helper()
	var err error
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	w.t.Fatalf("%s: not within %v: %v", what, d, err)
}

// agent is a weir that follows the cluster.
type agent struct {
	*rig.Agent
	w *world
}

// startAgent runs weir as the administrator, for the world's class, and waits until
// it is ready. flags win over those of the rig.
func (w *world) startAgent(flags ...string) *agent {
	w.t.Helper()
	return w.startAgentAs(w.Kubeconfig, flags...)
}

func (w *world) startAgentAs(kubeconfig string, flags ...string) *agent {
	w.t.Helper()
	a := w.launchAgent(kubeconfig, flags...)
	a.AwaitReady()
	return a
}

// launchAgent does not wait.
func (w *world) launchAgent(kubeconfig string, flags ...string) *agent {
	w.t.Helper()
	command := func(args ...string) *exec.Cmd { return exec.Command(rig.Binary(w.t), args...) }
	a := rig.LaunchAgent(w.t, command, append([]string{"--source", "kube", "--kubeconfig", kubeconfig,
		"--controller-class", w.controller()}, flags...)...)
	return &agent{a, w}
}

// controller is that of the world's class.
func (w *world) controller() string { return "weir.test/" + w.ns }

// long says whether tests may take minutes: WEIR_LONG=1.
func long() bool { return os.Getenv("WEIR_LONG") == "1" }

// background is for what outlives a test's context: its clean-up.
var background = context.Background()

// waitMax bounds the waits for pods.
const waitMax = 60 * time.Second
