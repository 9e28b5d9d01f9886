package watch

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weirproxy/weir/k8s"
)

// How long a feed waits before it tries again: at once after a watch that had
// lasted, then longer each time, each wait shortened by up to half so that the
// nodes of a cluster don't come all at once.
const (
	firstPause     = 100 * time.Millisecond
	pauseMax       = 3 * time.Second
	forbiddenPause = 5 * time.Second
	forbiddenMax   = 30 * time.Second // of a kind that is needed
	optionalMax    = 5 * time.Minute  // of others: there may be a thousand Secrets, on a thousand nodes
	atOnce         = 20 * time.Millisecond
	lastedMin      = time.Second // a watch that ends sooner counts as a failure
)

// pause finds how long to wait.
type pause struct {
	failures int
	optional bool // nobody waits for what is read
}

// after returns the wait after a watch that lasted for some time, 0 if there was
// none, and ended with err.
func (p *pause) after(lasted time.Duration, err error) time.Duration {
	if lasted >= lastedMin {
		p.failures = 0
	}
	least, most := firstPause, pauseMax
	if apierrors.IsForbidden(err) {
		least, most = forbiddenPause, forbiddenMax
		if p.optional {
			most = optionalMax
		}
	}
	wait := atOnce
	if p.failures > 0 || lasted == 0 && !tooOld(err) {
		wait = min(least<<min(p.failures, 10), most)
	}
	p.failures++
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		wait = max(wait, min(time.Duration(seconds)*time.Second, forbiddenMax))
	}
	return wait - rand.N(wait/2)
}

// noticed reports whether err is to be told as a notice: an optional kind that the
// API server denies.
func noticed(f *feed, err error) bool { return f.kind.optional && apierrors.IsForbidden(err) }

func forbiddenNotice(f *feed) k8s.Notice {
	return k8s.Notice{
		Severity: k8s.Warning, Kind: f.kind.name, Namespace: f.scope.namespace, Name: f.scope.name, Reason: "Forbidden",
		Message: fmt.Sprintf("the API server does not let Weir list and watch %s: it counts as missing", f.what()),
		Remedy:  f.remedy(),
	}
}

// what names what f reads.
func (f *feed) what() string {
	switch {
	case f.scope.name != "" && f.scope.namespace != "":
		return fmt.Sprintf("%s %s/%s", f.kind.resource, f.scope.namespace, f.scope.name)
	case f.scope.name != "":
		return fmt.Sprintf("%s %s", f.kind.resource, f.scope.name)
	case f.scope.namespace != "":
		return fmt.Sprintf("%s in namespace %s", f.kind.resource, f.scope.namespace)
	}
	return f.kind.resource + " in the cluster"
}

// remedy says which permission f lacks.
func (f *feed) remedy() string {
	role := "ClusterRole"
	if f.scope.namespace != "" {
		role = "Role of namespace " + f.scope.namespace
	}
	group := f.kind.group.Group
	rule := fmt.Sprintf("apiGroups [%q], resources [%q], verbs [\"list\", \"watch\"]", group, f.kind.resource)
	if f.scope.name != "" {
		rule += fmt.Sprintf(", resourceNames [%q]", f.scope.name)
	}
	return fmt.Sprintf("bind a %s with the rule %s to Weir's service account: see docs/rbac.md", role, rule)
}

// sayAgain is how long a failure that lasts is not logged again.
const sayAgain = time.Minute

// journal logs how feeds do. A feed's own goroutine calls it.
type journal struct {
	store  *store
	logger *slog.Logger
}

// failed counts and logs that a turn of f ended with err after a watch that lasted
// for some time.
func (j *journal) failed(f *feed, lasted time.Duration, err error) {
	if lasted >= lastedMin && errors.Is(err, errEnded) {
		return // as every watch does sooner or later
	}
	j.store.failed(f, err)
	now := time.Now()
	if noticed(f, err) || tooOld(err) || !f.said.IsZero() && now.Sub(f.said) < sayAgain {
		return
	}
	f.said = now
	attrs := []any{"kind", f.kind.name, "what", f.what(), "err", err}
	switch {
	case apierrors.IsForbidden(err):
		j.logger.Error("the API server does not let Weir list and watch what it needs: nothing new is seen of it", append(attrs, "remedy", f.remedy())...)
	case apierrors.IsUnauthorized(err):
		j.logger.Error("the API server does not accept Weir's credentials: what is known stays in force", attrs...)
	default:
		j.logger.Warn("a kind is not watched for now: what is known stays in force", attrs...)
	}
}

// works logs that f works again, if it failed before.
func (j *journal) works(f *feed) {
	if before := j.store.works(f); before != nil && !f.said.IsZero() {
		f.said = time.Time{}
		j.logger.Info("watched again", "kind", f.kind.name, "what", f.what())
	}
}
