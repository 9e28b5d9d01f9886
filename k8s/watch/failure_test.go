package watch

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPauses(t *testing.T) {
	refused := errors.New("connection refused")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", refused)
	expired := apierrors.NewResourceExpired("too old")
	for _, tt := range []struct {
		name        string
		failures    int // before
		optional    bool
		lasted      time.Duration
		err         error
		least, most time.Duration
	}{
		{"first failure", 0, false, 0, refused, firstPause / 2, firstPause},
		{"third failure", 2, false, 0, refused, 2 * firstPause, 4 * firstPause},
		{"many failures", 1000, false, 0, refused, pauseMax / 2, pauseMax},
		{"a watch that lasted", 7, false, time.Minute, errEnded, 0, atOnce},
		{"a watch that ended at once", 3, false, time.Millisecond, errEnded, 4 * firstPause, 8 * firstPause},
		{"too old, after a watch", 0, false, 0, expired, 0, atOnce},
		{"too old again and again", 3, false, 0, expired, 4 * firstPause, 8 * firstPause},
		{"forbidden", 0, false, 0, forbidden, forbiddenPause / 2, forbiddenPause},
		{"forbidden for long", 50, false, 0, forbidden, forbiddenMax / 2, forbiddenMax},
		{"an optional kind that is forbidden", 50, true, 0, forbidden, optionalMax / 2, optionalMax},
		{"an optional kind otherwise", 50, true, 0, refused, pauseMax / 2, pauseMax},
		{"the server says when", 0, false, 0, apierrors.NewTooManyRequests("wait", 7), 3500 * time.Millisecond, 7 * time.Second},
		{"the server says an hour", 0, false, 0, apierrors.NewTooManyRequests("wait", 3600), forbiddenMax / 2, forbiddenMax},
	} {
		seen := make(map[time.Duration]bool)
		for range 50 {
			p := pause{tt.failures, tt.optional}
			got := p.after(tt.lasted, tt.err)
			seen[got] = true
			if got < tt.least || got > tt.most {
				t.Errorf("%s: waits %s, want %s to %s", tt.name, got, tt.least, tt.most)
				break
			}
			if p.failures == 0 {
				t.Errorf("%s: the failure does not count", tt.name)
			}
		}
		if len(seen) < 10 {
			t.Errorf("%s: %d different waits of 50: all nodes would come at once", tt.name, len(seen))
		}
	}
}
