package k8s

import "slices"

// edit is what changes in a sorted list that may hold equal elements.
type edit[T any] struct{ remove, add []T }

func (e *edit[T]) empty() bool { return len(e.remove)+len(e.add) == 0 }

// apply returns list, sorted by compare, without one element equal to each of
// e.remove and with each of e.add. list itself is not changed, and is returned if
// there is nothing to do.
func (e *edit[T]) apply(list []T, compare func(a, b T) int) []T {
	if e.empty() {
		return list
	}
	slices.SortFunc(e.remove, compare)
	slices.SortFunc(e.add, compare)
	out := make([]T, 0, max(len(list)+len(e.add)-len(e.remove), 0))
	remove, add := e.remove, e.add
	for _, x := range list {
		for len(remove) > 0 && compare(remove[0], x) < 0 {
			remove = remove[1:] // was not there
		}
		if len(remove) > 0 && compare(remove[0], x) == 0 {
			remove = remove[1:]
			continue
		}
		for len(add) > 0 && compare(add[0], x) <= 0 {
			out, add = append(out, add[0]), add[1:]
		}
		out = append(out, x)
	}
	return append(out, add...)
}
