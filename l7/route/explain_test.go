package route

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// rule is shorthand for a route of a test table.
func rule(host, path string, kind PathKind, source string) *Route {
	policy := DefaultPolicy()
	return &Route{
		Host: host, Path: path, Kind: kind, Source: source,
		Cluster: NewCluster(source+":80", 1), Policy: &policy, Stats: NewRouteStats(host, source, 1),
	}
}

func explainTable(t *testing.T) *Table {
	t.Helper()
	table, err := NewTable(1, []VirtualHost{
		{Name: "a.example", Routes: []*Route{
			rule("a.example", "/shop", Exact, "shop/exact"),
			rule("a.example", "/shop", Prefix, "shop/prefix"),
			rule("a.example", "/shop/cart", Prefix, "shop/cart"),
			rule("a.example", "/shop/", Prefix, "shop/young"),
			rule("a.example", "/sho", Prefix, "shop/bytes"),
		}, Default: rule("a.example", "", Prefix, "shop/rest")},
		{Name: "*.example", Routes: []*Route{rule("*.example", "/", Prefix, "wild/all")}},
		{Name: "b.test", Routes: []*Route{rule("b.test", "/", Prefix, "b/all")}},
		{Name: "", Routes: []*Route{rule("", "/any", Prefix, "any/any")}, Default: rule("", "", Prefix, "any/default")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestExplainNamesTheReasonForEachRoute(t *testing.T) {
	table := explainTable(t)
	for _, tt := range []struct {
		name, host, path string
		want             string // source=reason, in the table's order
	}{
		{"exact beats prefix", "a.example", "/shop",
			"shop/exact=chosen shop/prefix=an exact rule matches shop/cart=not a prefix shop/young=standby behind an equal rule " +
				"shop/bytes=not a prefix by segments shop/rest=default not needed wild/all=less specific host b/all=other host " +
				"any/any=less specific host any/default=default not needed"},
		{"longest prefix wins", "a.example", "/shop/cart/1",
			"shop/exact=other path shop/prefix=shorter than the chosen prefix shop/cart=chosen shop/young=standby behind an equal rule " +
				"shop/bytes=not a prefix by segments shop/rest=default not needed wild/all=less specific host b/all=other host " +
				"any/any=less specific host any/default=default not needed"},
		{"default of the host", "a.example", "/x",
			"shop/exact=other path shop/prefix=not a prefix shop/cart=not a prefix shop/young=standby behind an equal rule " +
				"shop/bytes=not a prefix shop/rest=chosen wild/all=less specific host b/all=other host " +
				"any/any=less specific host any/default=default not needed"},
		{"wildcard", "z.example", "/x",
			"shop/exact=other host shop/prefix=other host shop/cart=other host shop/young=other host " +
				"shop/bytes=other host shop/rest=other host wild/all=chosen b/all=other host " +
				"any/any=less specific host any/default=default not needed"},
		{"default of any host", "unknown", "/x",
			"shop/exact=other host shop/prefix=other host shop/cart=other host shop/young=other host " +
				"shop/bytes=other host shop/rest=other host wild/all=other host b/all=other host " +
				"any/any=not a prefix any/default=chosen"},
	} {
		e := table.Explain(tt.host, tt.path)
		var got []string
		for _, c := range e.Candidates {
			got = append(got, fmt.Sprintf("%s=%s", c.Route.Source, c.Reason))
		}
		if g := strings.Join(got, " "); g != tt.want {
			t.Errorf("%s: Explain(%q, %q)\n got %s\nwant %s", tt.name, tt.host, tt.path, g, tt.want)
		}
		if !e.HostFound {
			t.Errorf("%s: Explain(%q, %q): no host decides", tt.name, tt.host, tt.path)
		}
	}
}

func TestExplainWithoutAnyHost(t *testing.T) {
	table, err := NewTable(1, []VirtualHost{{Name: "a.example", Routes: []*Route{rule("a.example", "/", Prefix, "a/a")}}})
	if err != nil {
		t.Fatal(err)
	}
	e := table.Explain("b.example", "/")
	if e.HostFound || e.Route != nil || len(e.Candidates) != 1 || e.Candidates[0].Reason != OtherHost {
		t.Errorf("Explain of an unknown host = %+v, want no host and the one route as %q", e, OtherHost)
	}
}

// Of any request exactly the route of Match is chosen, and none if it has none.
func TestExplainAgreesWithMatch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	hosts := []string{"", "a.example", "*.example", "b.test", "x.y.example"}
	segments := []string{"", "a", "ab", "b", "a/b", "a/b/", "a//b"}
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	for range 500 {
		var list []VirtualHost
		for _, name := range hosts {
			if random.IntN(3) == 0 {
				continue
			}
			v := VirtualHost{Name: name}
			for i := range random.IntN(6) {
				v.Routes = append(v.Routes, rule(name, "/"+pick(segments), PathKind(random.IntN(2)), fmt.Sprint("s/", i)))
			}
			if random.IntN(3) == 0 {
				v.Default = rule(name, "", Prefix, "s/default")
			}
			list = append(list, v)
		}
		table, err := NewTable(1, list)
		if err != nil {
			t.Fatal(err)
		}
		host, path := pick([]string{"", "a.example", "c.example", "b.test", "q.w.example"}), "/"+pick(segments)
		want := table.Match(host, path)
		e := table.Explain(host, path)
		chosen := 0
		for _, c := range e.Candidates {
			if (c.Reason == Chosen) != (c.Route == want) {
				t.Fatalf("Explain(%q, %q): %q of %q is %q, Match says %+v", host, path, c.Route.Path, c.Host, c.Reason, want)
			}
			if c.Reason == Chosen {
				chosen++
			}
			if c.Reason == Shorter && (want == nil || want.Kind != Prefix || len(want.Path) < len(strings.TrimRight(c.Route.Path, "/"))) {
				t.Fatalf("Explain(%q, %q): %q is called shorter than %+v", host, path, c.Route.Path, want)
			}
		}
		if e.Route != want || chosen > 1 || (want != nil) != (chosen == 1) {
			t.Fatalf("Explain(%q, %q) = %+v, Match = %+v", host, path, e.Route, want)
		}
	}
}
