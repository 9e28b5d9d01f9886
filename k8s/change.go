package k8s

import (
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Change is what a source tells: a whole set of objects, or only the
// EndpointSlices that changed since the last one.
type Change struct {
	// Objects is nil if nothing but EndpointSlices differ from the last change.
	Objects *Objects
	// Slices are the EndpointSlices that changed; nil is one that was deleted. They
	// count only without Objects, which hold all of them. The map belongs to the
	// receiver.
	Slices map[types.NamespacedName]*discoveryv1.EndpointSlice
	// Notices are those of the source that are in force, sorted. They count only
	// with Objects.
	Notices []Notice
	// Seen is when the first event of the change arrived; zero if that is unknown.
	Seen time.Time
}
