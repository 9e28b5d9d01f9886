package report

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weirproxy/weir/k8s"
)

// What the API server allows, bytes (events.k8s.io/v1).
const (
	noteBytesMax     = 1024
	instanceBytesMax = 128
)

// controller is who Events say they come from; eventAction what it was about.
const (
	controller  = "weir.io/ingress"
	eventAction = "Translate"
)

// notable reports whether n becomes an Event: what is not as the object asks for,
// and what is done differently from ingress-nginx under its own annotations and
// keys. Notices about files have no object.
func notable(n *k8s.Notice) bool {
	switch {
	case n.Kind == "" || n.Name == "":
		return false
	case n.Severity >= k8s.Warning:
		return true
	}
	return strings.HasPrefix(n.Field, "metadata.annotations[nginx.ingress.kubernetes.io/") ||
		n.Kind == "ConfigMap" && strings.HasPrefix(n.Field, "data[")
}

// eventKey names the Event about n on object. It is the same for the same words on
// the same object, whichever agent leads, so that a new leader finds the Event of
// the one before.
func eventKey(n *k8s.Notice, object *corev1.ObjectReference) types.NamespacedName {
	distinct := strings.Join([]string{n.Kind, string(object.UID), n.Reason, n.Field, n.Message, n.Remedy}, "\x00")
	key := types.NamespacedName{Namespace: n.Namespace, Name: objectName(n.Name, distinct)}
	if key.Namespace == "" {
		key.Namespace = metav1.NamespaceDefault // where Events on objects without namespace belong
	}
	return key
}

// newEvent returns the Event about n on object, first seen now.
func newEvent(key types.NamespacedName, n *k8s.Notice, object *corev1.ObjectReference, identity string) *eventsv1.Event {
	kind := corev1.EventTypeWarning
	if n.Severity < k8s.Warning {
		kind = corev1.EventTypeNormal
	}
	regarding := *object
	regarding.ResourceVersion = "" // it is about what holds, not about one version
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		EventTime:           metav1.NowMicro(),
		ReportingController: controller,
		ReportingInstance:   clip(identity, instanceBytesMax),
		Action:              eventAction,
		Reason:              n.Reason,
		Regarding:           regarding,
		Note:                note(n),
		Type:                kind,
	}
}

// note returns field, effect and remedy of n, the effect cut short if they are too
// long.
func note(n *k8s.Notice) string {
	before, after := "", ""
	if n.Field != "" {
		before = clip(n.Field, noteBytesMax/4) + ": "
	}
	if n.Remedy != "" {
		after = ". Remedy: " + clip(n.Remedy, noteBytesMax/4)
	}
	return before + clip(n.Message, noteBytesMax-len(before)-len(after)) + after
}

// clip returns s as valid UTF-8 of at most most bytes; "..." marks what is missing.
func clip(s string, most int) string {
	const mark = "..."
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= most {
		return s
	}
	cut := most - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}

// seriesPatch says that the Event was observed again, count times now.
func seriesPatch(count int32) []byte {
	type object = map[string]any
	b, err := json.Marshal(object{"series": eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NowMicro()}})
	if err != nil {
		panic("report: a series has no JSON: " + err.Error())
	}
	return b
}

// observed returns how often and when e was observed last.
func observed(e *eventsv1.Event) (count int32, last time.Time) {
	if e.Series != nil {
		return e.Series.Count, e.Series.LastObservedTime.Time
	}
	return 1, e.EventTime.Time
}
