package report

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// complaints logs what the API server refuses. The same trouble with the same
// thing is told once, then every complainAgain with the number of times.
type complaints struct {
	logger *slog.Logger

	mu    sync.Mutex
	known map[string]*complaint // by what was to be done
}

type complaint struct {
	reason string
	told   time.Time
	more   int // since told
}

// complainAgain is the time between two lines about the same trouble.
const complainAgain = 10 * time.Minute

// failed tells that what could not be done, such as "write status", unless a line
// says so already.
func (c *complaints) failed(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = make(map[string]*complaint)
	}
	reason := reasonOf(err)
	k := c.known[what]
	if k != nil && k.reason == reason && time.Since(k.told) < complainAgain {
		k.more++
		return
	}
	attrs := []slog.Attr{slog.String("what", what), slog.String("reason", reason), slog.Any("err", err)}
	if reason == reasonForbidden {
		attrs = append(attrs, slog.String("remedy", "give Weir's service account the rules of docs/rbac.md"))
	}
	if k != nil && k.more > 0 {
		attrs = append(attrs, slog.Int("times", k.more+1))
	}
	c.known[what] = &complaint{reason: reason, told: time.Now()}
	c.logger.LogAttrs(context.Background(), slog.LevelWarn, "the API server did not take it; tried again later, traffic is not affected", attrs...)
}

// failedIn is failed for what concerns a namespace. What is wrong with the API server
// as a whole is told once for all of them.
func (c *complaints) failedIn(what, namespace string, err error) {
	if !general(err) {
		what = in(what, namespace)
	}
	c.failed(what, err)
}

// workedIn is worked for what concerns a namespace.
func (c *complaints) workedIn(what, namespace string) {
	c.worked(what)
	c.worked(in(what, namespace))
}

func in(what, namespace string) string { return what + " in namespace " + namespace }

// worked tells that what can be done again, if there was trouble with it.
func (c *complaints) worked(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[what] != nil {
		delete(c.known, what)
		c.logger.Info("the API server takes it again", "what", what)
	}
}

const (
	reasonForbidden   = "Forbidden"
	reasonUnreachable = "Unreachable"
)

// reasonOf is a word for err.
func reasonOf(err error) string {
	if apierrors.IsForbidden(err) {
		return reasonForbidden
	}
	if r := apierrors.ReasonForError(err); r != "" {
		return string(r)
	}
	if code, ok := answered(err); ok {
		return fmt.Sprintf("HTTP %d", code)
	}
	return reasonUnreachable
}

// general reports whether err would meet any other request as well: the API server
// is away, ailing or overloaded.
func general(err error) bool {
	code, ok := answered(err)
	return !ok || code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

// answered returns the status of an answer of the API server; ok is false if err is
// none.
func answered(err error) (code int, ok bool) {
	var s apierrors.APIStatus
	if !errors.As(err, &s) {
		return 0, false
	}
	return int(s.Status().Code), true
}
