package cluster

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/weirproxy/weir/k8s"
	"github.com/weirproxy/weir/k8s/watch"
)

// tenants are the namespaces of docs/rbac/*.yaml in a world.
type tenants struct {
	*world
	weir, a, b string
	user       string
	groups     []string
}

// newTenants makes the namespaces and grants what files of docs/rbac say, with the
// names of the world.
func newTenants(t *testing.T, files ...string) *tenants {
	w := newWorld(t)
	s := &tenants{world: w, weir: w.ns + "-weir", a: w.ns + "-team-a", b: w.ns + "-team-b"}
	s.user = "system:serviceaccount:" + s.weir + ":weir"
	s.groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + s.weir, "system:authenticated"}
	for _, n := range []string{s.weir, s.a, s.b} {
		w.namespace(n, "shard", w.ns)
	}
	for _, f := range files {
		s.apply("../../docs/rbac/" + f)
	}
	return s
}

// apply creates the objects of a file.
func (s *tenants) apply(file string) {
	s.t.Helper()
	text, err := os.ReadFile(file)
	s.must(err)
	named := strings.NewReplacer("namespace: weir", "namespace: "+s.weir, "namespace: team-a", "namespace: "+s.a, "namespace: team-b", "namespace: "+s.b)
	// Roles of the cluster are seen by all worlds.
	global := regexp.MustCompile(`(kind: ClusterRole(?:Binding)?\nmetadata: \{name: |kind: ClusterRole, name: )`)
	for doc := range strings.SplitSeq(global.ReplaceAllString(named.Replace(string(text)), "${1}"+s.ns+"-"), "\n---\n") {
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(doc), nil, nil)
		if err != nil {
			s.t.Fatalf("%s: %v in\n%s", file, err, doc)
		}
		c, none := s.client, metav1.CreateOptions{}
		switch o := o.(type) {
		case *corev1.Namespace: // the world has made one in its place
		case *corev1.ServiceAccount:
			_, err = c.CoreV1().ServiceAccounts(o.Namespace).Create(s.ctx, o, none)
		case *rbacv1.Role:
			_, err = c.RbacV1().Roles(o.Namespace).Create(s.ctx, o, none)
			s.t.Cleanup(func() { c.RbacV1().Roles(o.Namespace).Delete(background, o.Name, metav1.DeleteOptions{}) })
		case *rbacv1.RoleBinding:
			_, err = c.RbacV1().RoleBindings(o.Namespace).Create(s.ctx, o, none)
			s.t.Cleanup(func() { c.RbacV1().RoleBindings(o.Namespace).Delete(background, o.Name, metav1.DeleteOptions{}) })
		case *rbacv1.ClusterRole:
			_, err = c.RbacV1().ClusterRoles().Create(s.ctx, o, none)
			s.t.Cleanup(func() { c.RbacV1().ClusterRoles().Delete(background, o.Name, metav1.DeleteOptions{}) })
		case *rbacv1.ClusterRoleBinding:
			_, err = c.RbacV1().ClusterRoleBindings().Create(s.ctx, o, none)
			s.t.Cleanup(func() { c.RbacV1().ClusterRoleBindings().Delete(background, o.Name, metav1.DeleteOptions{}) })
		default:
			s.t.Fatalf("%s: no place for a %T", file, o)
		}
		s.must(err)
	}
}

// may asks the API server whether Weir's service account may do "verb resource[/sub]
// [namespace [name]]", where weir, team-a and team-b are the namespaces of the files.
func (s *tenants) may(request string) bool {
	s.t.Helper()
	f := append(strings.Fields(request), "", "")
	namespaces := map[string]string{"weir": s.weir, "team-a": s.a, "team-b": s.b, "*": ""}
	groups := map[string]string{"ingresses": "networking.k8s.io", "ingressclasses": "networking.k8s.io", "endpointslices": "discovery.k8s.io",
		"leases": "coordination.k8s.io", "events": "events.k8s.io", "roles": "rbac.authorization.k8s.io", "clusterrolebindings": "rbac.authorization.k8s.io"}
	resource, sub, _ := strings.Cut(f[1], "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: s.user, Groups: s.groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: f[0], Group: groups[resource], Resource: resource, Subresource: sub,
			Namespace: namespaces[f[2]], Name: f[3]}}}
	got, err := s.client.AuthorizationV1().SubjectAccessReviews().Create(s.ctx, review, metav1.CreateOptions{})
	s.must(err)
	return got.Status.Allowed
}

// never is what no variant grants.
var never = []string{
	"list secrets *", "watch secrets *", "get secrets *", "list secrets weir", "get secrets weir weir", "create secrets team-a", "delete secrets team-b",
	"get secrets team-a shop-tls", "list secrets team-a", "list secrets team-a other", "watch secrets team-a other",
	"list configmaps *", "list configmaps weir", "list configmaps weir other", "list configmaps team-a", "update configmaps weir weir",
	"list pods *", "list pods team-a", "get pods/log team-a", "create pods/exec team-a", "list endpoints *", "create nodes *", "patch nodes/status *",
	"create ingresses team-a", "update ingresses team-a", "patch ingresses team-a", "delete ingresses team-a", "update ingressclasses *",
	"update services team-a", "create endpointslices team-a", "update endpointslices team-a", "patch endpointslices team-a",
	"list leases team-a", "update leases *", "list leases *", "list events *", "get events team-a", "create serviceaccounts/token weir", "create roles weir",
	"create clusterrolebindings *", "escalate roles weir", "impersonate users *",
}

func TestTheRolesGrantWhatTheySayAndNoMore(t *testing.T) {
	common := []string{
		"list ingressclasses *", "watch ingressclasses *", "list nodes *", "watch nodes *", "get nodes * own",
		"list ingresses team-a", "watch ingresses team-a", "get ingresses team-a x", "list endpointslices team-a", "watch services team-a",
		"patch ingresses/status team-a x", "create events team-a", "patch events team-a", "create leases weir", "delete leases weir",
		"list configmaps weir weir", "watch configmaps weir weir",
	}
	selected := []string{"list secrets team-a shop-tls", "watch secrets team-a shop-tls", "list secrets team-b", "watch secrets team-b any"}
	elsewhere := []string{"list ingresses *", "watch services *", "list endpointslices *", "list ingresses team-b", "watch endpointslices team-b",
		"patch ingresses/status team-b", "create events team-b", "list services default"}
	for _, tt := range []struct {
		name     string
		files    []string
		may      []string
		mayNever []string
	}{
		{"cluster", []string{"cluster.yaml"}, slices.Concat(common, elsewhere), slices.Concat(selected, []string{"list namespaces *"})},
		{"namespaces", []string{"namespaces.yaml"}, common, slices.Concat(elsewhere, selected, []string{"list namespaces *"})},
		{"secrets", []string{"namespaces.yaml", "secrets.yaml"}, slices.Concat(common, selected), elsewhere},
		{"namespace selector", []string{"cluster.yaml", "namespace-selector.yaml"}, slices.Concat(common, []string{"list namespaces *", "watch namespaces *"}), selected},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTenants(t, tt.files...)
			for _, r := range tt.may {
				if !s.may(r) {
					t.Errorf("%q is denied", r)
				}
			}
			for _, r := range slices.Concat(never, tt.mayNever) {
				if s.may(r) {
					t.Errorf("%q is allowed", r)
				}
			}
		})
	}
}

// fill gives each tenant a served Ingress with a Secret, and what it leads to.
func (s *tenants) fill() {
	s.t.Helper()
	for _, n := range []string{s.a, s.b} {
		for _, name := range []string{"shop-tls", "other"} {
			_, err := s.client.CoreV1().Secrets(n).Create(s.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS,
				Data: map[string][]byte{"tls.crt": []byte(n), "tls.key": []byte("key")}}, metav1.CreateOptions{})
			s.must(err)
		}
		s.addService(n, "web")
		i := s.ingress(n, "web", n+".example.test", "web")
		i.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "shop-tls"}}
		s.addIngress(i)
	}
}

// seen is what a source with the rights of Weir's service account told last.
type seen struct {
	*watch.Source
	mu   sync.Mutex
	last k8s.Change
}

func (s *tenants) watch(edit func(*watch.Config)) *seen {
	s.t.Helper()
	c := watch.Config{API: s.As(s.user, s.groups...), Objects: k8s.Options{ControllerClasses: []string{s.controller()}}}
	edit(&c)
	source, err := watch.New(c)
	s.must(err)
	v := &seen{Source: source}
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		source.Run(ctx, func(c k8s.Change) {
			v.mu.Lock()
			defer v.mu.Unlock()
			if c.Objects != nil {
				c.Objects = c.Objects.Clone() // its maps are not for later
				v.last = c
			}
		})
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
	})
	return v
}

// is waits until what was told is as want: Ingresses, then Secrets, then what is
// noticed.
func (v *seen) is(s *tenants, want string) {
	s.t.Helper()
	s.eventually(want, func() error {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.last.Objects == nil {
			return fmt.Errorf("nothing was told: %+v", v.Stats())
		}
		var out []string
		for k := range v.last.Objects.Ingresses {
			out = append(out, "Ingress "+k.String())
		}
		for k := range v.last.Objects.Secrets {
			out = append(out, "Secret "+k.String())
		}
		for _, n := range v.last.Notices {
			out = append(out, fmt.Sprintf("%s of %s %s/%s", n.Reason, n.Kind, n.Namespace, n.Name))
		}
		slices.Sort(out)
		got := strings.NewReplacer(s.a, "a", s.b, "b").Replace(strings.Join(out, ", "))
		if got != want {
			return fmt.Errorf("told %q", got)
		}
		return nil
	})
}

// With the Role of one namespace and the name of one Secret, Weir serves that
// namespace, and sees nothing else.
func TestTheRoleOfANamespaceSuffices(t *testing.T) {
	s := newTenants(t, "namespaces.yaml")
	s.fill()
	v := s.watch(func(c *watch.Config) { c.Objects.WatchNamespaces = []string{s.a} })
	v.is(s, "Forbidden of Secret a/shop-tls, Ingress a/web")
	s.apply("../../docs/rbac/secrets.yaml")
	v.is(s, "Ingress a/web, Secret a/shop-tls") // a permission that comes is found out
	// What comes later is seen too.
	i := s.ingress(s.a, "more", "more.example.test", "web")
	i.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "other"}}
	s.addIngress(i)
	v.is(s, "Forbidden of Secret a/other, Ingress a/more, Ingress a/web, Secret a/shop-tls")
}

// A kind that is needed and forbidden keeps Weir from being ready.
func TestWithoutARoleNothingIsServed(t *testing.T) {
	s := newTenants(t, "namespaces.yaml")
	s.fill()
	v := s.watch(func(c *watch.Config) { c.Objects.WatchNamespaces = []string{s.a, s.b} })
	s.eventually("the refusals of team-b", func() error {
		for _, k := range v.Stats().Kinds {
			if k.Kind != "IngressClass" && k.Kind != "Secret" && (k.Synced || !strings.Contains(k.Failure, "in namespace "+s.b) || !strings.Contains(k.Failure, "forbidden")) {
				return fmt.Errorf("%+v", k)
			}
		}
		return nil
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last.Objects != nil {
		t.Errorf("objects were told: %+v", v.last.Objects)
	}
}

// The selectors of two installations split a cluster.
func TestSelectorsSplitACluster(t *testing.T) {
	s := newTenants(t, "cluster.yaml", "namespace-selector.yaml", "secrets.yaml")
	s.fill()
	label := func(ns, team string) {
		s.t.Helper()
		o, err := s.client.CoreV1().Namespaces().Get(s.ctx, ns, metav1.GetOptions{})
		s.must(err)
		o.Labels["team"] = team
		_, err = s.client.CoreV1().Namespaces().Update(s.ctx, o, metav1.UpdateOptions{})
		s.must(err)
	}
	label(s.a, "a")
	label(s.b, "b")
	one := s.watch(func(c *watch.Config) { c.NamespaceSelector = "shard=" + s.ns + ",team=a" })
	other := s.watch(func(c *watch.Config) { c.NamespaceSelector = "shard=" + s.ns + ",team!=a" })
	one.is(s, "Ingress a/web, Secret a/shop-tls")
	other.is(s, "Ingress b/web, Secret b/shop-tls")
	label(s.a, "moved")
	one.is(s, "")
	other.is(s, "Ingress a/web, Ingress b/web, Secret a/shop-tls, Secret b/shop-tls")
}

// What the reviews say is so: requests for more than one's own are refused.
func TestSecretsThatNobodyNamedCantBeRead(t *testing.T) {
	s := newTenants(t, "cluster.yaml", "secrets.yaml")
	s.fill()
	as, err := kubernetes.NewForConfig(s.As(s.user, s.groups...))
	s.must(err)
	for _, tt := range []struct {
		name, namespace, selector string
		allowed                   bool
	}{
		{"all", "", "", false},
		{"all TLS Secrets", "", "type=kubernetes.io/tls", false},
		{"one name in all namespaces", "", "metadata.name=shop-tls", false},
		{"all of the namespace", s.a, "", false},
		{"all but one", s.a, "metadata.name!=other", false},
		{"another name", s.a, "metadata.name=other", false},
		{"the name and the type", s.a, "metadata.name=shop-tls,type=kubernetes.io/tls", true},
		{"the name", s.a, "metadata.name=shop-tls", true},
		{"all of a namespace that allows it", s.b, "", true},
	} {
		list, err := as.CoreV1().Secrets(tt.namespace).List(s.ctx, metav1.ListOptions{FieldSelector: tt.selector})
		switch {
		case tt.allowed && (err != nil || len(list.Items) == 0):
			t.Errorf("%s: list = %d Secrets, %v; want some", tt.name, len(list.Items), err)
		case !tt.allowed && !apierrors.IsForbidden(err):
			t.Errorf("%s: list = %v, want that it is forbidden", tt.name, err)
		}
		w, err := as.CoreV1().Secrets(tt.namespace).Watch(s.ctx, metav1.ListOptions{FieldSelector: tt.selector})
		if err == nil {
			w.Stop()
		}
		if tt.allowed && err != nil || !tt.allowed && !apierrors.IsForbidden(err) {
			t.Errorf("%s: watch = %v, want allowed: %t", tt.name, err, tt.allowed)
		}
	}
	if _, err := as.CoreV1().Secrets(s.a).Get(s.ctx, "shop-tls", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("get = %v, want that it is forbidden", err)
	}
	o := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "x"}, AddressType: discoveryv1.AddressTypeIPv4}
	if _, err := as.DiscoveryV1().EndpointSlices(s.a).Create(s.ctx, o, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("create an EndpointSlice = %v, want that it is forbidden", err)
	}
}
