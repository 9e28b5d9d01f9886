package report

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// The times between attempts to watch the Service.
const (
	serviceFirst   = time.Second
	serviceMost    = 30 * time.Second
	serviceTimeout = 10 * time.Second // of the list
)

// followService calls told with the addresses of the Service to publish, at first
// and whenever it changes, until ctx ends. Trouble leaves what was told last.
func followService(ctx context.Context, r *Reporter, told func([]string)) {
	what := "watch Service " + r.config.Publish.Service
	failures := 0
	for ctx.Err() == nil {
		began := time.Now()
		err := watchService(ctx, r, func(s *corev1.Service) {
			r.log.worked(what)
			told(serviceAddresses(s))
		})
		if ctx.Err() != nil {
			return
		}
		if err != errWatchEnded { // which is how the API server works
			r.log.failed(what, err)
		}
		if time.Since(began) > serviceMost {
			failures = 0
		}
		failures++
		pause(ctx, backoff(failures, serviceFirst, serviceMost))
	}
}

// watchService lists the Service and follows it as long as one watch lasts. The
// error is never nil.
func watchService(ctx context.Context, r *Reporter, changed func(*corev1.Service)) error {
	key := serviceKey(r.config.Publish.Service)
	limited, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	list, err := r.api.service(limited, key)
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return errNoService
	}
	changed(&list.Items[0])
	w, err := r.api.watchService(ctx, key, list.ResourceVersion)
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-w.ResultChan():
			if !ok {
				return errWatchEnded
			}
			switch s, isService := e.Object.(*corev1.Service); {
			case e.Type == watch.Error:
				return apierrors.FromObject(e.Object)
			case e.Type == watch.Deleted:
				return errNoService
			case isService && e.Type != watch.Bookmark:
				changed(s)
			}
		}
	}
}

// serviceAddresses returns where clients reach s, by its type.
func serviceAddresses(s *corev1.Service) []string {
	switch s.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return []string{s.Spec.ExternalName}
	case corev1.ServiceTypeLoadBalancer:
		var out []string
		for _, i := range s.Status.LoadBalancer.Ingress {
			if i.IP != "" {
				out = append(out, i.IP)
			}
			if i.Hostname != "" {
				out = append(out, i.Hostname)
			}
		}
		return append(out, s.Spec.ExternalIPs...)
	}
	if len(s.Spec.ExternalIPs) > 0 {
		return s.Spec.ExternalIPs
	}
	if s.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	if len(s.Spec.ClusterIPs) > 0 {
		return s.Spec.ClusterIPs
	}
	return []string{s.Spec.ClusterIP}
}
