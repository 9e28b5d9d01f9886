package kubelet

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weirproxy/weir/tests/child"
	"github.com/weirproxy/weir/tests/pods"
)

// pod is one from its first sight to its end.
type pod struct {
	k       *Kubelet
	node    string
	changed chan struct{} // capacity 1: object is new
	gone    chan struct{} // closed when the object was deleted
	lost    chan struct{} // closed by Lose
	lose    sync.Once

	mu     sync.Mutex
	object *corev1.Pod
	ground *pods.Pod // nil before it runs

	// owned by run
	process  *child.Process // nil while none runs
	ready    bool
	restarts int32
	passed   int // probes in a row
	failed   int
}

func (p *pod) current() *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.object
}

// run leads the pod through its life. It returns when its object is gone, or ctx
// ends.
func (p *pod) run(ctx context.Context) {
	if !p.bind(ctx) {
		return
	}
	ground, err := p.k.ground.Add()
	if err != nil {
		p.k.report(fmt.Errorf("pod %s: %w", p.current().Name, err))
		return
	}
	p.mu.Lock()
	p.ground = ground
	p.mu.Unlock()
	defer ground.Remove()
	defer p.kill()

	back := 250 * time.Millisecond // until the next restart
	for {
		ended := p.live(ctx)
		switch {
		case !ended:
			return
		case p.current().DeletionTimestamp != nil:
			p.finish(ctx)
			return
		}
		p.process, p.ready, p.restarts = nil, false, p.restarts+1
		p.tell(ctx)
		if !p.pause(ctx, back) {
			p.finish(ctx)
			return
		}
		back = min(2*back, 4*time.Second)
	}
}

// bind gives the pod its node.
func (p *pod) bind(ctx context.Context) bool {
	o := p.current()
	if o.Spec.NodeName != "" || o.DeletionTimestamp != nil {
		return true
	}
	var err error
	retry(ctx, func() error {
		err = p.k.client.CoreV1().Pods(o.Namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: o.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: p.node},
		}, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // deleted meanwhile, or bound after all
		}
		return err
	})
	return ctx.Err() == nil && !apierrors.IsNotFound(err)
}

// live runs the process once and reports whether it ended, rather than everything.
func (p *pod) live(ctx context.Context) bool {
	container := p.current().Spec.Containers[0]
	probe := container.ReadinessProbe
	if probe != nil && probe.HTTPGet == nil {
		p.k.report(fmt.Errorf("pod %s: its readiness probe is not httpGet, which alone is known here", p.current().Name))
		return false
	}
	var env []string
	for _, v := range container.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	var err error
	if p.process, err = p.ground.Serve(env...); err != nil {
		p.k.report(fmt.Errorf("pod %s: %w", p.current().Name, err))
		return false
	}
	p.ready, p.passed, p.failed = probe == nil, 0, 0
	p.tell(ctx)
	var ticks <-chan time.Time
	if probe != nil {
		tick := time.NewTicker(period(p.current(), probe))
		defer tick.Stop()
		ticks = tick.C
	}
	var kill <-chan time.Time // the end of the grace period
	for {
		if o := p.current(); o.DeletionTimestamp != nil && kill == nil {
			p.k.ask(p)
			grace := int64(30)
			if o.DeletionGracePeriodSeconds != nil {
				grace = *o.DeletionGracePeriodSeconds
			}
			kill = time.After(time.Duration(grace) * time.Second)
		}
		select {
		case <-ctx.Done():
			return false
		case <-p.gone: // deleted by force
			return false
		case <-p.lost:
			p.process.Kill()
			<-ctx.Done() // nobody knows
			return false
		case <-p.process.Done:
			return true
		case <-kill:
			p.process.Signal(syscall.SIGKILL)
		case <-p.changed:
		case <-ticks:
			p.probe(ctx, probe)
		}
	}
}

// ProbePeriod is an annotation that makes a pod's readiness probe run more often
// than each second.
const ProbePeriod = "weir.test/probe-period"

func period(o *corev1.Pod, probe *corev1.Probe) time.Duration {
	if d, err := time.ParseDuration(o.Annotations[ProbePeriod]); err == nil && d > 0 {
		return d
	}
	return time.Duration(max(probe.PeriodSeconds, 1)) * time.Second
}

// probe asks once whether the pod is ready.
func (p *pod) probe(ctx context.Context, probe *corev1.Probe) {
	client := &http.Client{
		Timeout:   time.Duration(max(probe.TimeoutSeconds, 1)) * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	ok := false
	r, err := client.Get(fmt.Sprintf("http://%s:%d%s", p.ground.Addr, pods.Port, probe.HTTPGet.Path))
	if err == nil {
		r.Body.Close()
		ok = r.StatusCode >= 200 && r.StatusCode < 400
	}
	before := p.ready
	if ok {
		p.passed, p.failed = p.passed+1, 0
		p.ready = p.ready || p.passed >= int(max(probe.SuccessThreshold, 1))
	} else {
		p.passed, p.failed = 0, p.failed+1
		p.ready = p.ready && p.failed < int(max(probe.FailureThreshold, 1))
	}
	if p.ready != before {
		p.tell(ctx)
	}
}

// pause waits for d, unless the pod is to be terminated or everything ends.
func (p *pod) pause(ctx context.Context, d time.Duration) bool {
	after := time.After(d)
	for p.current().DeletionTimestamp == nil {
		select {
		case <-ctx.Done():
			return false
		case <-p.gone:
			return false
		case <-p.changed:
		case <-after:
			return true
		}
	}
	return false
}

func (p *pod) kill() {
	if p.process != nil {
		p.process.Kill()
	}
}

// finish tells that the pod has ended and removes its object.
func (p *pod) finish(ctx context.Context) {
	p.ready = false
	p.tell(ctx)
	o := p.current()
	now := int64(0)
	retry(ctx, func() error {
		err := p.k.client.CoreV1().Pods(o.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{
			GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &o.UID},
		})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	})
}
