package agent

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/weirproxy/weir/agent/netwatch"
)

// networkRetry is the time between two attempts to follow the node's network.
const networkRetry = 10 * time.Second

// followNetwork runs what follows the node's network until ctx ends. Where that
// can't be done pods are served as their slices say.
func followNetwork(ctx context.Context, run func(context.Context) error, logger *slog.Logger) {
	said := ""
	for {
		err := run(ctx)
		if ctx.Err() != nil {
			return
		}
		if text := err.Error(); text != said {
			said = text
			logger.Warn("pods of this node that lose their network are not noticed before their slices say so", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(networkRetry):
		}
	}
}

// linkOf returns the name of the link of this node that leads to an address, "" if
// none is known.
func (s *state) linkOf(a netip.Addr) string {
	if s.network == nil {
		return ""
	}
	link, _ := s.network.Local(a)
	return link
}

// collectNetwork shows what is known of the node's network.
func collectNetwork(out sink, s netwatch.Stats) {
	out.gauge(mNetworkWatching, truth(s.Watching))
	out.gauge(mNetworkPods, float64(s.Pods))
	out.gauge(mNetworkLost, float64(s.Lost))
	out.counter(mNetworkLosses, s.Losses)
	out.counter(mNetworkEvents, s.Events)
	out.counter(mNetworkOverflows, s.Overflows)
}
