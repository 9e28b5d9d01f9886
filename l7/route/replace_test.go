package route

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestReplaceEqualsANewTable changes hosts at random, and compares each table with
// one that is built whole.
func TestReplaceEqualsANewTable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := []string{"", "*.a.test", "a.test", "b.a.test", "c.test", "z.test"}
	var clusters []*Cluster
	for n := range 4 {
		clusters = append(clusters, NewCluster(fmt.Sprint("c", n), 1))
	}
	policy := DefaultPolicy()
	host := func(name string) VirtualHost {
		v := VirtualHost{Name: name}
		for range random.IntN(3) {
			v.Routes = append(v.Routes, &Route{Host: name, Path: []string{"/", "/x", "/x/y"}[random.IntN(3)], Kind: PathKind(random.IntN(2)),
				Source: fmt.Sprint(random.Int()), Cluster: clusters[random.IntN(4)], Policy: &policy, Stats: NewRouteStats(name, "", 1)})
		}
		if random.IntN(2) == 0 {
			v.Default = &Route{Host: name, Cluster: clusters[random.IntN(4)], Policy: &policy, Stats: NewRouteStats(name, "", 1)}
		}
		return v
	}
	table, err := NewTable(1, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := table
	all := map[string]VirtualHost{}
	for version := uint64(2); version < 500; version++ {
		var changed []VirtualHost
		var removed []string
		for _, name := range names {
			switch random.IntN(6) {
			case 0:
				removed = append(removed, name) // there or not
				delete(all, name)
			case 1, 2:
				v := host(name)
				changed, all[name] = append(changed, v), v
			}
		}
		next, err := table.Replace(version, changed, removed)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, table, whole, clusters) // it may be in use still
		var list []VirtualHost
		for _, name := range slices.Sorted(maps.Keys(all)) {
			list = append(list, all[name])
		}
		if whole, err = NewTable(version, list); err != nil {
			t.Fatal(err)
		}
		equal(t, next, whole, clusters)
		table = next
	}
}

// equal fails if two tables differ.
func equal(t *testing.T, got, want *Table, clusters []*Cluster) {
	t.Helper()
	if got.Version != want.Version || got.Routes() != want.Routes() || len(got.Hosts()) != len(want.Hosts()) {
		t.Fatalf("table %d with %d routes, %d hosts; want %d, %d, %d", got.Version, got.Routes(), len(got.Hosts()),
			want.Version, want.Routes(), len(want.Hosts()))
	}
	for n, v := range got.Hosts() {
		if w := want.Hosts()[n]; v.Name != w.Name || v.Default != w.Default || !slices.Equal(v.Routes, w.Routes) {
			t.Fatalf("host %d is %+v, want %+v", n, v, w)
		}
	}
	for _, c := range clusters {
		if got.Uses(c) != want.Uses(c) {
			t.Fatalf("table %d: Uses(%s) = %t, want %t", got.Version, c.Name, got.Uses(c), want.Uses(c))
		}
	}
	for _, name := range []string{"a.test", "b.a.test", "d.a.test", "c.test", "nobody.example"} {
		for _, path := range []string{"/", "/x", "/x/y", "/z"} {
			if got, want := got.Match(name, path), want.Match(name, path); got != want {
				t.Fatalf("Match(%q, %q) = %v, want %v", name, path, got, want)
			}
		}
	}
}

func TestReplaceRefusesABadHost(t *testing.T) {
	table, err := NewTable(1, []VirtualHost{{Name: "a.test"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Replace(2, []VirtualHost{{Name: "A.test"}}, nil); err == nil {
		t.Error("an upper-case host was taken")
	}
	if _, err := table.Replace(2, []VirtualHost{{Name: "b.test"}, {Name: "b.test"}}, nil); err == nil {
		t.Error("one host was taken twice")
	}
}
