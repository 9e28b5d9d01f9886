package k8s

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/weirproxy/weir/l7/route"
)

// tierText shows the last bytes of a cluster's addresses: tiers, draining, lost.
func tierText(c *route.Cluster) string {
	set := c.Endpoints()
	var out strings.Builder
	list := func(endpoints []*route.Endpoint) {
		for n, e := range endpoints {
			if n > 0 {
				out.WriteByte(' ')
			}
			fmt.Fprint(&out, e.Addr.Addr().As4()[3])
		}
	}
	start := 0
	for n, end := range set.Tiers {
		if n > 0 {
			out.WriteString(" | ")
		}
		list(set.Active[start:end])
		start = end
	}
	for _, rest := range []struct {
		name string
		list []*route.Endpoint
	}{{"draining", set.Draining}, {"lost", set.Lost}} {
		if len(rest.list) > 0 {
			fmt.Fprintf(&out, "; %s ", rest.name)
			list(rest.list)
		}
	}
	return out.String()
}

// near returns a Service with fields in its spec and a slice with endpoints, which
// an Ingress for the host a.test leads to.
func near(spec, endpoints string) string {
	return class + fmt.Sprintf(`
---
kind: Service
apiVersion: v1
metadata: {name: a, namespace: t1}
spec: {%s ports: [{port: 80, targetPort: 8080}]}
---
kind: EndpointSlice
apiVersion: discovery.k8s.io/v1
metadata: {name: a-1, namespace: t1, labels: {kubernetes.io/service-name: a}}
addressType: IPv4
ports: [{name: "", port: 8080}]
endpoints: [%s]
`, spec, endpoints) + ingressOf("t1", "i", "a.test", "/", "a")
}

// endpoint returns one with the last byte of its address, its node and zone, and
// the rest of it.
func endpoint(n int, node, zone, rest string) string {
	return fmt.Sprintf("{addresses: [10.0.0.%d], nodeName: %s, zone: %s, %s}", n, node, zone, rest)
}

func TestNearEndpointsComeFirst(t *testing.T) {
	const (
		same    = "trafficDistribution: PreferSameNode,"
		zone    = "trafficDistribution: PreferSameZone,"
		closest = "trafficDistribution: PreferClose,"
		local   = "internalTrafficPolicy: Local,"
	)
	for1 := func(key, name string) string { return "hints: {" + key + ": [{name: other}, {name: " + name + "}]}" }
	plain := []string{endpoint(1, "n3", "z2", ""), endpoint(2, "n2", "z1", ""), endpoint(3, "n1", "z1", ""), endpoint(4, "n1", "z1", "")}
	for _, test := range []struct {
		name      string
		spec      string
		endpoints []string
		want      string
		notice    string
	}{
		{"no preference", "", plain, "1 2 3 4", ""},
		{"cluster policy", "internalTrafficPolicy: Cluster,", plain, "1 2 3 4", ""},
		{"same zone", zone, plain, "2 3 4 | 1", ""},
		{"close", closest, plain, "2 3 4 | 1", ""},
		{"same node", same, plain, "3 4 | 2 | 1", ""},
		{"local policy spills over", local, plain, "3 4 | 1 2", ""},
		{"local policy and zone", local + zone, plain, "3 4 | 2 | 1", ""},
		{"nobody near", same, plain[:1], "1", ""},
		{"unknown word", "trafficDistribution: Nearby,", plain, "1 2 3 4", "UnknownDistribution"},
		{"near ones are not ready", same, []string{plain[0], endpoint(3, "n1", "z1", "conditions: {ready: false}")}, "1; draining 3", ""},
		{"near ones terminate", same, []string{plain[0], endpoint(3, "n1", "z1", "conditions: {ready: false, serving: true, terminating: true}")},
			"1; draining 3", ""},
		{"only terminating ones, near first", same, []string{
			endpoint(1, "n3", "z2", "conditions: {ready: false, serving: true, terminating: true}"),
			endpoint(3, "n1", "z1", "conditions: {ready: false, serving: true, terminating: true}")}, "3 | 1", ""},
		{"zone hints without a preference", "", []string{
			endpoint(1, "n3", "z2", for1("forZones", "z1")), endpoint(2, "n2", "z1", for1("forZones", "z2"))}, "1 | 2", ""},
		{"zone hints before zones", zone, []string{
			endpoint(1, "n3", "z2", for1("forZones", "z1")), endpoint(2, "n2", "z1", for1("forZones", "z2"))}, "1 | 2", ""},
		{"not all have zone hints", "", []string{
			endpoint(1, "n3", "z2", for1("forZones", "z1")), endpoint(2, "n2", "z1", "")}, "1 2", ""},
		{"the first has no zone hint", "", []string{
			endpoint(1, "n3", "z2", ""), endpoint(2, "n2", "z1", for1("forZones", "z1"))}, "1 2", ""},
		{"the first has no node hint", "", []string{
			endpoint(1, "n3", "z2", ""), endpoint(2, "n2", "z1", for1("forNodes", "n1"))}, "1 2", ""},
		{"not all have zone hints, zones decide", zone, []string{
			endpoint(1, "n3", "z2", for1("forZones", "z1")), endpoint(2, "n2", "z1", "")}, "2 | 1", ""},
		{"only ready ones need hints", "", []string{
			endpoint(1, "n3", "z2", for1("forZones", "z1")), endpoint(2, "n2", "z1", for1("forZones", "z2")),
			endpoint(3, "n2", "z1", "conditions: {ready: false}")}, "1 | 2; draining 3", ""},
		{"node hints", "", []string{
			endpoint(1, "n3", "z2", for1("forNodes", "n1")), endpoint(2, "n1", "z1", for1("forNodes", "n2"))}, "1 | 2", ""},
		{"node and zone hints", "", []string{
			endpoint(1, "n3", "z2", "hints: {forNodes: [{name: n3}], forZones: [{name: z2}]}"),
			endpoint(2, "n2", "z1", "hints: {forNodes: [{name: n2}], forZones: [{name: z1}]}"),
			endpoint(3, "n1", "z1", "hints: {forNodes: [{name: n1}], forZones: [{name: z1}]}")}, "3 | 2 | 1", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, _ := parse(t, near(test.spec, strings.Join(test.endpoints, ", ")))
			r := NewTranslator(Options{NodeName: "n1", Zone: "z1"}).Apply(o)
			if got := tierText(r.ClusterList[0]); got != test.want {
				t.Errorf("tiers %q, want %q", got, test.want)
			}
			want := map[string]int{}
			if test.notice != "" {
				want[test.notice] = 1
			}
			if got := reasons(r.Notices); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("notices %v, want %v", r.Notices, want)
			}
			for _, e := range r.ClusterList[0].Endpoints().Active {
				if e.Local != (e.Node == "n1") {
					t.Errorf("%s on %s: local = %v", e.Addr, e.Node, e.Local)
				}
			}
		})
	}
}

func TestAPlaceThatIsNotKnown(t *testing.T) {
	all := endpoint(1, "n1", "z1", "") + "," + endpoint(2, `""`, `""`, "")
	for _, test := range []struct {
		name, spec string
		options    Options
		want       string
		notices    int
	}{
		{"no node name", "trafficDistribution: PreferSameNode,", Options{Zone: "z1"}, "1 | 2", 1},
		{"neither", "trafficDistribution: PreferSameNode,", Options{}, "1 2", 1},
		{"no zone", "trafficDistribution: PreferClose,", Options{NodeName: "n1"}, "1 2", 1},
		{"nobody asks", "", Options{}, "1 2", 0},
	} {
		o, _ := parse(t, near(test.spec, all))
		r := NewTranslator(test.options).Apply(o)
		if got := tierText(r.ClusterList[0]); got != test.want {
			t.Errorf("%s: tiers %q, want %q", test.name, got, test.want)
		}
		if got := reasons(r.Notices)["PlaceUnknown"]; got != test.notices || len(r.Notices) != got {
			t.Errorf("%s: notices %v, want %d", test.name, r.Notices, test.notices)
		}
	}
}

// TestPlaceAndPreferenceChange: both take effect without a new table.
func TestPlaceAndPreferenceChange(t *testing.T) {
	o, _ := parse(t, near("", endpoint(1, "n2", "z2", "")+","+endpoint(2, "n1", "z1", "")))
	tr := NewTranslator(Options{NodeName: "n1"})
	c := tr.Apply(o).ClusterList[0]
	step := func(what, want string, changed int) {
		t.Helper()
		r := tr.Apply(o)
		if got := tierText(c); got != want || r.Table != nil || r.EndpointsChanged != changed {
			t.Errorf("%s: tiers %q, %d changes, want %q, %d and no table", what, got, r.EndpointsChanged, want, changed)
		}
	}
	step("at the start", "1 2", 0)
	o = o.Clone()
	s := o.Services[name("t1", "a")].DeepCopy()
	s.Spec.TrafficDistribution = new("PreferClose")
	o.Services[name("t1", "a")] = s
	step("preferred, but the zone is not known", "1 2", 0)
	for _, zone := range []string{"z1", "z2"} {
		o = o.Clone()
		o.Node = &corev1.Node{}
		o.Node.Labels = map[string]string{corev1.LabelTopologyZone: zone}
		want := "2 | 1"
		if zone == "z2" {
			want = "1 | 2"
		}
		step("in zone "+zone, want, 1)
	}
	o = o.Clone()
	s = s.DeepCopy()
	s.Spec.TrafficDistribution, s.Spec.InternalTrafficPolicy = nil, new(corev1.ServiceInternalTrafficPolicyLocal)
	o.Services[name("t1", "a")] = s
	step("local", "2 | 1", 1)
}
