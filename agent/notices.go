package agent

import (
	"context"
	"log/slog"

	"github.com/weirproxy/weir/k8s"
)

// noticeLog logs a notice when it comes into force or changes, and once more when
// it is no longer in force.
type noticeLog struct {
	logger *slog.Logger
	known  map[k8s.Notice]bool
}

// update takes all notices in force. A notice that only moved to another line of
// its file counts as the same.
func (l *noticeLog) update(notices []k8s.Notice) {
	now := make(map[k8s.Notice]bool, len(notices))
	for _, n := range notices {
		key := n
		key.Line = 0
		if now[key] {
			continue
		}
		now[key] = true
		if !l.known[key] {
			l.logger.LogAttrs(context.Background(), level(n.Severity), n.Message, attrs(n)...)
		}
	}
	for key := range l.known {
		if !now[key] {
			l.logger.LogAttrs(context.Background(), slog.LevelInfo, "no longer so: "+key.Message, attrs(key)...)
		}
	}
	l.known = now
}

func level(s k8s.Severity) slog.Level {
	switch s {
	case k8s.Error:
		return slog.LevelError
	case k8s.Warning:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// attrs returns the fields of n that have a value.
func attrs(n k8s.Notice) []slog.Attr {
	var out []slog.Attr
	for _, f := range []struct{ key, value string }{
		{"reason", n.Reason}, {"kind", n.Kind}, {"namespace", n.Namespace}, {"name", n.Name},
		{"field", n.Field}, {"remedy", n.Remedy}, {"file", n.File},
	} {
		if f.value != "" {
			out = append(out, slog.String(f.key, f.value))
		}
	}
	if n.Line > 0 {
		out = append(out, slog.Int("line", n.Line))
	}
	return out
}
