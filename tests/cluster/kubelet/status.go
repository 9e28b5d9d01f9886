package kubelet

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// tell writes the pod's status.
func (p *pod) tell(ctx context.Context) {
	o := p.current()
	body, err := json.Marshal(map[string]any{"status": p.status(o)})
	if err != nil {
		p.k.report(fmt.Errorf("pod %s: %w", o.Name, err))
		return
	}
	retry(ctx, func() error {
		_, err := p.k.client.CoreV1().Pods(o.Namespace).Patch(ctx, o.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

func (p *pod) status(o *corev1.Pod) corev1.PodStatus {
	now := metav1.Now()
	condition := func(t corev1.PodConditionType, v bool) corev1.PodCondition {
		s := corev1.ConditionFalse
		if v {
			s = corev1.ConditionTrue
		}
		return corev1.PodCondition{Type: t, Status: s, LastTransitionTime: now}
	}
	c := o.Spec.Containers[0]
	container := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: p.ready, RestartCount: p.restarts}
	s := corev1.PodStatus{
		Phase:  corev1.PodRunning,
		HostIP: "10.77.0.1",
		PodIP:  p.ground.Addr.String(), PodIPs: []corev1.PodIP{{IP: p.ground.Addr.String()}},
		Conditions: []corev1.PodCondition{
			condition(corev1.PodScheduled, true), condition(corev1.PodInitialized, true),
			condition(corev1.ContainersReady, p.ready), condition(corev1.PodReady, p.ready),
		},
	}
	switch {
	case p.process != nil && running(p.process.Done):
		container.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
	case o.DeletionTimestamp != nil:
		s.Phase = corev1.PodSucceeded
		code := 0
		if p.process != nil {
			code = p.process.ExitCode()
		}
		if code != 0 {
			s.Phase = corev1.PodFailed
		}
		container.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: int32(code), FinishedAt: now}
	default:
		container.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
	}
	s.ContainerStatuses = []corev1.ContainerStatus{container}
	return s
}

func running(done <-chan struct{}) bool {
	select {
	case <-done:
		return false
	default:
		return true
	}
}
