package cluster

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weirproxy/weir/tests/cluster/kubelet"
	"github.com/weirproxy/weir/tests/pods"
)

// addClass makes an IngressClass that goes with the test.
func (w *world) addClass(name string) {
	w.t.Helper()
	o := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: w.controller()}}
	_, err := w.client.NetworkingV1().IngressClasses().Create(w.ctx, o, metav1.CreateOptions{})
	w.must(err)
	w.t.Cleanup(func() {
		if err := w.client.NetworkingV1().IngressClasses().Delete(background, name, metav1.DeleteOptions{}); err != nil {
			w.t.Error(err)
		}
	})
}

// addService makes a Service of pods app=name, port 80.
func (w *world) addService(ns, name string) *corev1.Service {
	w.t.Helper()
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": name},
		Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(pods.Port)}},
	}}
	o, err := w.client.CoreV1().Services(ns).Create(w.ctx, o, metav1.CreateOptions{})
	w.must(err)
	return o
}

// ingress returns one of the world's class that leads host to service.
func (w *world) ingress(ns, name, host, service string) *networkingv1.Ingress {
	prefix := networkingv1.PathTypePrefix
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: networkingv1.IngressSpec{IngressClassName: &w.class, Rules: []networkingv1.IngressRule{{
			Host: host,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
				Path: "/", PathType: &prefix,
				Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
					Name: service, Port: networkingv1.ServiceBackendPort{Number: 80},
				}},
			}}}},
		}}},
	}
}

func (w *world) addIngress(o *networkingv1.Ingress) *networkingv1.Ingress {
	w.t.Helper()
	o, err := w.client.NetworkingV1().Ingresses(o.Namespace).Create(w.ctx, o, metav1.CreateOptions{})
	w.must(err)
	return o
}

// deployment is one whose pods are probed every 100 ms.
type deployment struct {
	w    *world
	name string
}

// addDeployment runs n pods app=service and does not wait for them. change may edit
// the pods' template; nil leaves it.
func (w *world) addDeployment(service, name string, n int32, change func(*corev1.PodTemplateSpec)) *deployment {
	w.t.Helper()
	labels := map[string]string{"app": service, "deployment": name}
	grace := int64(5)
	o := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &n,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{kubelet.ProbePeriod: "100ms"}},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: &grace,
				Containers: []corev1.Container{{Name: "main", Image: "backend", ReadinessProbe: &corev1.Probe{
					FailureThreshold: 1,
					ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(pods.Port)}},
				}}},
			},
		},
	}}
	if change != nil {
		change(&o.Spec.Template)
	}
	_, err := w.client.AppsV1().Deployments(w.ns).Create(w.ctx, o, metav1.CreateOptions{})
	w.must(err)
	return &deployment{w, name}
}

// environment sets a variable of the pods' first container.
func environment(name, value string) func(*corev1.PodTemplateSpec) {
	return func(t *corev1.PodTemplateSpec) {
		c := &t.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
	}
}

// scale asks for n pods and returns when they are ready and others gone.
func (d *deployment) scale(n int32) {
	d.w.t.Helper()
	d.patch(fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
	d.settled(n)
}

// restart replaces all pods, one by one as the Deployment's strategy says.
func (d *deployment) restart(mark string) {
	d.w.t.Helper()
	d.ask(mark)
	o, err := d.w.client.AppsV1().Deployments(d.w.ns).Get(d.w.ctx, d.name, metav1.GetOptions{})
	d.w.must(err)
	d.settled(*o.Spec.Replicas)
}

// ask begins a restart.
func (d *deployment) ask(mark string) {
	d.w.t.Helper()
	d.patch(fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"restarted":%q}}}}}`, mark))
}

// minReady has a rollout go on only when a new pod was ready for so long.
func (d *deployment) minReady(seconds int) {
	d.w.t.Helper()
	d.patch(fmt.Sprintf(`{"spec":{"minReadySeconds":%d}}`, seconds))
}

func (d *deployment) patch(body string) {
	d.w.t.Helper()
	_, err := d.w.client.AppsV1().Deployments(d.w.ns).Patch(d.w.ctx, d.name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
	d.w.must(err)
}

// settled waits until n pods of the newest kind are ready and there are no others.
func (d *deployment) settled(n int32) {
	d.w.t.Helper()
	d.w.within(waitMax, "deployment "+d.name, func() error {
		o, err := d.w.client.AppsV1().Deployments(d.w.ns).Get(d.w.ctx, d.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := o.Status
		if s.ObservedGeneration < o.Generation || s.UpdatedReplicas != n || s.ReadyReplicas != n || s.Replicas != n {
			return fmt.Errorf("%d of %d pods updated, %d ready, %d in all", s.UpdatedReplicas, n, s.ReadyReplicas, s.Replicas)
		}
		list := d.pods()
		if len(list) != int(n) {
			return fmt.Errorf("%d pods, want %d", len(list), n)
		}
		for _, p := range list { // the Deployment's status may be from before
			if p.DeletionTimestamp != nil || !ready(p) {
				return fmt.Errorf("pod %s is not ready", p.Name)
			}
		}
		return nil
	})
}

func ready(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// pods returns those that exist, terminating ones included.
func (d *deployment) pods() []corev1.Pod {
	d.w.t.Helper()
	list, err := d.w.client.CoreV1().Pods(d.w.ns).List(d.w.ctx, metav1.ListOptions{LabelSelector: "deployment=" + d.name})
	d.w.must(err)
	return list.Items
}

// readyPod returns one that is ready.
func (d *deployment) readyPod() corev1.Pod {
	d.w.t.Helper()
	for _, p := range d.pods() {
		if p.DeletionTimestamp == nil && len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].Ready {
			return p
		}
	}
	d.w.t.Fatalf("no pod of deployment %s is ready", d.name)
	return corev1.Pod{}
}
