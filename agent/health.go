package agent

import (
	"context"
	"time"

	"github.com/weirproxy/weir/l7"
)

const (
	// turnAge is how old a worker's last turn may be before it has to prove that
	// it still can turn.
	turnAge = 10 * time.Second
	// turnWait is how long it may take to do so.
	turnWait = 2 * time.Second
	turnPoll = 10 * time.Millisecond
)

// stuck returns the workers that do not turn their event loop.
//
// A loop without events sleeps, perhaps for as long as a request waits for its
// answer, so an old turn alone means nothing: such a worker is woken, and it is
// stuck if no turn follows. Before the data path runs and while it drains, when
// loops end one by one, no worker counts as stuck.
func (a *admin) stuck(ctx context.Context) []int {
	if !a.state.ready.Load() || a.state.draining.Load() {
		return nil
	}
	before := a.stats().Workers
	late := map[int]int64{}
	for i, w := range before {
		if time.Since(time.UnixMilli(w.LastTurnMilli)) > turnAge {
			late[i] = w.LastTurnMilli
		}
	}
	if len(late) == 0 {
		return nil
	}
	a.wake()
	deadline := time.NewTimer(turnWait)
	defer deadline.Stop()
	poll := time.NewTicker(turnPoll)
	defer poll.Stop()
	for {
		turned(late, a.stats())
		if len(late) == 0 {
			return nil
		}
		select {
		case <-poll.C:
			continue
		case <-deadline.C:
		case <-ctx.Done():
		}
		var out []int
		for i := range before {
			if _, ok := late[i]; ok {
				out = append(out, i)
			}
		}
		return out
	}
}

// turned removes from late the workers that turned since.
func turned(late map[int]int64, s l7.Stats) {
	for i, w := range s.Workers {
		if last, ok := late[i]; ok && w.LastTurnMilli != last {
			delete(late, i)
		}
	}
}
