package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/k8s/report"
	"github.com/weirproxy/weir/k8s/watch"
)

// published returns the addresses in the status of an Ingress, separated by spaces.
func (w *world) published(ns, name string) string {
	w.t.Helper()
	i, err := w.client.NetworkingV1().Ingresses(ns).Get(w.ctx, name, metav1.GetOptions{})
	w.must(err)
	var out []string
	for _, e := range i.Status.LoadBalancer.Ingress {
		out = append(out, e.IP+e.Hostname)
	}
	return strings.Join(out, " ")
}

// awaitPublished waits until the status of an Ingress has exactly these addresses.
func (w *world) awaitPublished(ns, name, want string) {
	w.t.Helper()
	w.within(time.Minute, "status of "+name, func() error {
		if got := w.published(ns, name); got != want {
			return fmt.Errorf("status %q, want %q", got, want)
		}
		return nil
	})
}

// eventsOn returns the Events on an object.
func (w *world) eventsOn(ns, name string) (out []eventsv1.Event) {
	w.t.Helper()
	list, err := w.client.EventsV1().Events(ns).List(w.ctx, metav1.ListOptions{})
	w.must(err)
	for _, e := range list.Items {
		if e.Regarding.Name == name {
			out = append(out, e)
		}
	}
	return out
}

// awaitEvent waits for one Event on an object with a reason, and returns it.
func (w *world) awaitEvent(ns, name, reason string) (out eventsv1.Event) {
	w.t.Helper()
	w.eventually("Event "+reason+" on "+name, func() error {
		var reasons []string
		for _, e := range w.eventsOn(ns, name) {
			if e.Reason == reason {
				out = e
				return nil
			}
			reasons = append(reasons, e.Reason)
		}
		return fmt.Errorf("Events: %v", reasons)
	})
	return out
}

// reporter is a Reporter in this process with a view of its own.
type reporter struct {
	*report.Reporter
	source *watch.Source
	stop   context.CancelFunc
	done   chan struct{}
}

// visible are the objects of the world's namespace and class.
func (w *world) visible() k8s.Options {
	return k8s.Options{ControllerClasses: []string{w.controller()}, WatchNamespaces: []string{w.ns}}
}

// report runs a reporter whose writes api makes. edit may change the
// configuration, see the view; nil leaves it.
func (w *world) report(identity string, api *rest.Config, edit func(*report.Config)) *reporter {
	w.t.Helper()
	c := report.Config{API: api, Identity: identity, Namespace: w.ns, Lease: "weir", Logger: slog.New(slog.NewTextHandler(w.t.Output(), nil)),
		Publish: report.Publish{Status: true, Addresses: []string{"192.0.2.1"}}}
	if edit != nil {
		edit(&c)
	}
	r := &reporter{done: make(chan struct{})}
	var err error
	r.Reporter, err = report.New(c)
	w.must(err)
	r.source, err = watch.New(watch.Config{API: w.Config(), Objects: w.visible(),
		StatusChanged: r.StatusChanged})
	w.must(err)
	ctx, stop := context.WithCancel(w.ctx)
	r.stop = stop
	translator := k8s.NewTranslator(w.visible())
	following := make(chan struct{})
	go func() {
		defer close(following)
		r.source.Run(ctx, func(c k8s.Change) {
			if c.Objects != nil {
				result := translator.Apply(c.Objects)
				r.Set(result.Admitted, result.Notices)
			}
		})
	}()
	go func() {
		defer close(r.done)
		r.Run(ctx, r.source)
		<-following
	}()
	w.t.Cleanup(func() { r.stop(); <-r.done })
	return r
}

func (r *reporter) awaitLead(w *world) {
	w.t.Helper()
	w.eventually("lead", func() error {
		if !r.Stats().Leading {
			return errors.New("does not lead")
		}
		return nil
	})
}

// CB-16: the owner's Ingresses get a status, the thief an Event.
func TestCB16ThiefOfAHost(t *testing.T) {
	w := newWorld(t)
	other := w.ns + "-t2"
	w.namespace(other)
	host := w.ns + ".example.test"
	w.addService(w.ns, "a")
	w.addService(other, "evil")
	w.addIngress(w.ingress(w.ns, "own", host, "a"))
	a := w.startAgent("--pod-namespace", w.ns, "--publish-address", "192.0.2.1,lb.example.test")
	w.awaitPublished(w.ns, "own", "lb.example.test 192.0.2.1")
	thief := w.addIngress(w.ingress(other, "thief", host, "evil"))
	more := w.ingress(w.ns, "more", host, "a")
	more.Spec.Rules[0].HTTP.Paths[0].Path = "/v2"
	w.addIngress(more)
	w.awaitPublished(w.ns, "more", "lb.example.test 192.0.2.1")
	e := w.awaitEvent(other, "thief", "HostAlreadyClaimed")
	if e.Regarding.UID != thief.UID || e.Regarding.Kind != "Ingress" || e.Type != corev1.EventTypeWarning ||
		!strings.Contains(e.Note, host) || !strings.Contains(e.Note, "Remedy: ") {
		t.Errorf("Event = %+v, want a warning on the thief that names %s and a remedy", e, host)
	}
	if got := w.published(other, "thief"); got != "" {
		t.Errorf("status of the thief = %q, want none", got)
	}
	for _, name := range []string{"own", "more"} {
		w.must(w.client.NetworkingV1().Ingresses(w.ns).Delete(w.ctx, name, metav1.DeleteOptions{}))
	}
	w.awaitPublished(other, "thief", "lb.example.test 192.0.2.1")
	if n := len(w.eventsOn(other, "thief")); n < 1 {
		t.Errorf("%d Events on the thief, want what was said to stay", n)
	}
	// The last agent takes its addresses with it.
	a.Signal(syscall.SIGTERM)
	w.awaitPublished(other, "thief", "")
}

// Two agents: one writes. When it dies the other goes on, and repeats nothing.
func TestALeaderThatDiesIsReplaced(t *testing.T) {
	w := newWorld(t)
	other := w.ns + "-t2"
	w.namespace(other)
	w.addIngress(w.ingress(w.ns, "own", w.ns+".example.test", "none"))
	flags := []string{"--pod-namespace", w.ns, "--publish-address", "192.0.2.1"}
	first := w.startAgent(append(flags, "--pod-name", "first")...)
	w.awaitPublished(w.ns, "own", "192.0.2.1")
	second := w.startAgent(append(flags, "--pod-name", "second")...)
	w.addIngress(w.ingress(other, "thief", w.ns+".example.test", "none"))
	event := w.awaitEvent(other, "thief", "HostAlreadyClaimed")
	if event.ReportingInstance != "first" {
		t.Errorf("the Event is from %q, want the first agent", event.ReportingInstance)
	}
	if first.Metric("weir_report_leading") != 1 || second.Metric("weir_report_leading") != 0 {
		t.Error("want the first to lead alone")
	}
	first.Signal(syscall.SIGKILL)
	died := time.Now()
	w.addIngress(w.ingress(w.ns, "late", "late."+w.ns+".example.test", "none"))
	w.awaitPublished(w.ns, "late", "192.0.2.1")
	t.Logf("the second agent wrote %v after the first died", time.Since(died).Round(time.Second))
	if again := w.eventsOn(other, "thief"); len(again) != 1 || again[0].ResourceVersion != event.ResourceVersion {
		t.Errorf("Events on the thief under the second leader: %+v, want the one of the first untouched", again)
	}
	// Whether the first is back soon nobody knows yet: its addresses stay.
	second.Signal(syscall.SIGTERM)
	if code := second.ExitCode(30 * time.Second); code != 0 {
		t.Errorf("the second agent ended with exit code %d, want 0", code)
	}
	if got := w.published(w.ns, "own"); got != "192.0.2.1" {
		t.Errorf("status after the second agent ended = %q, want it untouched", got)
	}
}

// What the API server notes about who wrote a status decides what is removed.
func TestOnlyWhatWeirWroteIsRemoved(t *testing.T) {
	w := newWorld(t)
	ingresses := w.client.NetworkingV1().Ingresses(w.ns)
	for _, name := range []string{"ours", "theirs"} {
		w.addIngress(w.ingress(w.ns, name, name+"."+w.ns+".example.test", "none"))
	}
	r := w.report("a", w.Config(), nil)
	w.awaitPublished(w.ns, "ours", "192.0.2.1")
	w.awaitPublished(w.ns, "theirs", "192.0.2.1")
	// Both go to another class; its controller has written one at once.
	other := w.ns + "-other"
	for _, name := range []string{"ours", "theirs"} {
		patch := fmt.Sprintf(`{"spec":{"ingressClassName":%q}}`, other)
		if name == "theirs" {
			status := `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"},{"ip":"192.0.2.77"}]}}}`
			_, err := ingresses.Patch(w.ctx, name, types.MergePatchType, []byte(status), metav1.PatchOptions{FieldManager: "other-controller"}, "status")
			w.must(err)
		}
		_, err := ingresses.Patch(w.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		w.must(err)
	}
	w.awaitPublished(w.ns, "ours", "")
	if got := w.published(w.ns, "theirs"); got != "192.0.2.1 192.0.2.77" {
		t.Errorf("status that another controller wrote = %q, want it untouched", got)
	}
	if s := r.Stats(); s.StatusErrors != 0 {
		t.Errorf("stats = %+v, want no errors", s)
	}
}

// staleView knows wrong UIDs until fresh is set.
type staleView struct {
	report.View
	fresh atomic.Bool
}

func (v *staleView) Ingress(key types.NamespacedName) (networkingv1.IngressLoadBalancerStatus, corev1.ObjectReference, bool) {
	status, ref, ok := v.View.Ingress(key)
	if !v.fresh.Load() {
		ref.UID = "00000000-0000-0000-0000-000000000000"
	}
	return status, ref, ok
}

// An Ingress that was made anew is not written to on what was seen of the old one.
func TestAStaleViewWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.addIngress(w.ingress(w.ns, "own", w.ns+".example.test", "none"))
	source, err := watch.New(watch.Config{API: w.Config(), Objects: w.visible()})
	w.must(err)
	r, err := report.New(report.Config{API: w.Config(), Identity: "a", Namespace: w.ns, Lease: "weir", Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Publish: report.Publish{Status: true, Addresses: []string{"192.0.2.1"}}})
	w.must(err)
	view := &staleView{View: source}
	ctx, stop := context.WithCancel(w.ctx)
	synced, done := make(chan struct{}), make(chan struct{})
	go source.Run(ctx, func(k8s.Change) { close(synced); <-ctx.Done() })
	<-synced
	go func() { defer close(done); r.Run(ctx, view) }()
	defer func() { stop(); <-done }()
	r.Set([]types.NamespacedName{{Namespace: w.ns, Name: "own"}}, nil)
	w.eventually("conflicts", func() error {
		if s := r.Stats(); s.StatusConflicts < 2 || s.StatusErrors != 0 {
			return fmt.Errorf("stats %+v", s)
		}
		return nil
	})
	if got := w.published(w.ns, "own"); got != "" {
		t.Errorf("status = %q, want none while the view is stale", got)
	}
	view.fresh.Store(true)
	w.awaitPublished(w.ns, "own", "192.0.2.1")
}

// A leader renews an Event that an earlier one wrote, as the API server allows it.
func TestAnOldEventIsObservedAgain(t *testing.T) {
	w := newWorld(t)
	w.addIngress(w.ingress(w.ns, "bad", w.ns+".example.test", "none"))
	r := w.report("first", w.Config(), nil)
	e := w.awaitEvent(w.ns, "bad", "NoBackend")
	r.stop()
	<-r.done
	events := w.client.EventsV1().Events(w.ns)
	w.must(events.Delete(w.ctx, e.Name, metav1.DeleteOptions{}))
	old := e.DeepCopy()
	old.ObjectMeta = metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name}
	old.EventTime = metav1.NewMicroTime(time.Now().Add(-40 * time.Minute))
	_, err := events.Create(w.ctx, old, metav1.CreateOptions{})
	w.must(err)
	second := w.report("second", w.Config(), nil)
	w.eventually("second observation", func() error {
		now, err := events.Get(w.ctx, e.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now.Series == nil || now.Series.Count != 2 || time.Since(now.Series.LastObservedTime.Time) > time.Minute {
			return fmt.Errorf("series %+v", now.Series)
		}
		return nil
	})
	if s := second.Stats(); s.EventErrors != 0 {
		t.Errorf("stats = %+v, want no errors", s)
	}
}

// reportRules are all that a reporter needs, but for its own Node.
var reportRules = []rbacv1.PolicyRule{
	{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "create", "update", "delete"}},
	{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses"}, Verbs: []string{"get"}},
	{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses/status"}, Verbs: []string{"patch"}},
	{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
}

// allow grants user rules in the world's namespace.
func (w *world) allow(name, user string, rules ...rbacv1.PolicyRule) {
	w.t.Helper()
	_, err := w.client.RbacV1().Roles(w.ns).Create(w.ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	w.must(err)
	_, err = w.client.RbacV1().RoleBindings(w.ns).Create(w.ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}, metav1.CreateOptions{})
	w.must(err)
}

// The least rules suffice for all of it: lead, write, remove, observe.
func TestAReporterNeedsNoMoreThanItsRules(t *testing.T) {
	w := newWorld(t)
	user := "reporter-of-" + w.ns
	w.allow("report", user, reportRules...)
	w.addIngress(w.ingress(w.ns, "own", w.ns+".example.test", "none"))
	clear := func(c *report.Config) { c.Publish.ClearAtEnd = true }
	r := w.report("a", w.As(user), clear)
	w.awaitPublished(w.ns, "own", "192.0.2.1")
	w.awaitEvent(w.ns, "own", "NoBackend")
	r.stop()
	<-r.done
	if got := w.published(w.ns, "own"); got != "" {
		t.Errorf("status after the last reporter ended = %q, want none", got)
	}
	r = w.report("b", w.As(user), clear) // finds the Event
	w.awaitPublished(w.ns, "own", "192.0.2.1")
	w.eventually("Event found", func() error {
		if s := r.Stats(); s.EventsWanted != 1 {
			return fmt.Errorf("stats %+v", s)
		}
		return nil
	})
	if s := r.Stats(); s.StatusErrors != 0 || s.EventErrors != 0 {
		t.Errorf("stats = %+v, want no errors", s)
	}
}

// Without a right, what needs it waits and the rest goes on.
func TestMissingRightsStopNothingElse(t *testing.T) {
	w := newWorld(t)
	user := "poor-" + w.ns
	w.allow("lead", user, reportRules[0])
	w.allow("events", user, reportRules[3])
	w.addIngress(w.ingress(w.ns, "own", w.ns+".example.test", "none"))
	r := w.report("a", w.As(user), nil)
	w.awaitEvent(w.ns, "own", "NoBackend")
	w.eventually("refusal", func() error {
		if s := r.Stats(); s.StatusErrors == 0 || s.StatusWrites != 0 {
			return fmt.Errorf("stats %+v", s)
		}
		return nil
	})
	w.allow("status", user, reportRules[2])
	w.awaitPublished(w.ns, "own", "192.0.2.1")
}

// Each agent tells the addresses of its node by its Lease; nobody lists Nodes.
func TestNodesArePublishedWithoutTheRightToListThem(t *testing.T) {
	w := newWorld(t)
	user := "nodes-" + w.ns
	w.allow("report", user, reportRules...)
	var names []string
	for n, ip := range []string{"10.20.0.1", "10.20.0.2"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-report-%d", w.ns, n)}}
		names = append(names, node.Name)
		_, err := w.client.CoreV1().Nodes().Create(w.ctx, node, metav1.CreateOptions{})
		w.must(err)
		t.Cleanup(func() {
			if err := w.client.CoreV1().Nodes().Delete(background, node.Name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
		status, err := json.Marshal(map[string]any{"status": map[string]any{"addresses": []map[string]string{
			{"type": "Hostname", "address": node.Name}, {"type": "InternalIP", "address": ip}}}})
		w.must(err)
		_, err = w.client.CoreV1().Nodes().Patch(w.ctx, node.Name, types.MergePatchType, status, metav1.PatchOptions{}, "status")
		w.must(err)
	}
	role := w.ns + "-nodes"
	_, err := w.client.RbacV1().ClusterRoles().Create(w.ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}, ResourceNames: names}}}, metav1.CreateOptions{})
	w.must(err)
	_, err = w.client.RbacV1().ClusterRoleBindings().Create(w.ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}, metav1.CreateOptions{})
	w.must(err)
	t.Cleanup(func() {
		for _, err := range []error{
			w.client.RbacV1().ClusterRoleBindings().Delete(background, role, metav1.DeleteOptions{}),
			w.client.RbacV1().ClusterRoles().Delete(background, role, metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	w.addIngress(w.ingress(w.ns, "own", w.ns+".example.test", "none"))
	onNode := func(n int) func(*report.Config) {
		return func(c *report.Config) { c.Publish.Addresses, c.Publish.NodeName = nil, names[n] }
	}
	w.report("a", w.As(user), onNode(0)).awaitLead(w)
	w.awaitPublished(w.ns, "own", "10.20.0.1")
	w.report("b", w.As(user), onNode(1))
	w.awaitPublished(w.ns, "own", "10.20.0.1 10.20.0.2")
	leases, err := w.client.CoordinationV1().Leases(w.ns).List(w.ctx, metav1.ListOptions{LabelSelector: "weir.io/election=weir"})
	w.must(err)
	var holders []string
	for _, l := range leases.Items {
		holders = append(holders, *l.Spec.HolderIdentity)
	}
	slices.Sort(holders)
	if !slices.Equal(holders, names) {
		t.Errorf("holders of the agents' Leases = %q, want the nodes %q", holders, names)
	}
}

// The Service's addresses are followed by a watch of this one Service.
func TestTheAddressesOfAServiceAreFollowed(t *testing.T) {
	w := newWorld(t)
	user := "service-" + w.ns
	w.allow("report", user, append(slices.Clone(reportRules), rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"},
		Verbs: []string{"list", "watch"}, ResourceNames: []string{"front"}})...)
	front := w.addService(w.ns, "front")
	w.addIngress(w.ingress(w.ns, "own", w.ns+".example.test", "none"))
	w.report("a", w.As(user), func(c *report.Config) { c.Publish.Addresses, c.Publish.Service = nil, w.ns+"/front" })
	w.awaitPublished(w.ns, "own", front.Spec.ClusterIP)
	services := w.client.CoreV1().Services(w.ns)
	_, err := services.Patch(w.ctx, "front", types.MergePatchType, []byte(`{"spec":{"type":"LoadBalancer"}}`), metav1.PatchOptions{})
	w.must(err)
	for _, address := range []string{"192.0.2.50", "192.0.2.51"} {
		status := fmt.Sprintf(`{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, address)
		_, err = services.Patch(w.ctx, "front", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
		w.must(err)
		w.awaitPublished(w.ns, "own", address)
	}
}
