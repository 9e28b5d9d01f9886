package l7

import (
	"math/rand/v2"
	"testing"
)

type alarm struct {
	timer
	fired []int64
	now   *int64
}

func (p *alarm) expired() { p.fired = append(p.fired, *p.now) }

func TestTimersFireOnceWithinATickOfTheirDeadline(t *testing.T) {
	now := int64(1_000_003)
	var w wheel
	w.init(now)
	random := rand.New(rand.NewPCG(1, 2))
	probes := make([]*alarm, 500)
	want := make([]int64, len(probes))
	for i := range probes {
		p := &alarm{now: &now}
		p.owner = p
		want[i] = now + random.Int64N(40_000)
		w.set(&p.timer, now+random.Int64N(20_000)+1)
		w.set(&p.timer, want[i]) // later or earlier than before
		probes[i] = p
	}
	stopped := probes[7]
	w.stop(&stopped.timer)
	for end := now + 50_000; now < end; {
		wait := w.wait(now)
		if wait < 0 {
			break
		}
		now += int64(wait) + random.Int64N(3)
		w.advance(now)
	}
	if wait := w.wait(now); wait != -1 {
		t.Errorf("wait with no timer left = %d, want -1", wait)
	}
	for i, p := range probes {
		if p == stopped {
			if len(p.fired) != 0 {
				t.Errorf("stopped timer fired at %v", p.fired)
			}
			continue
		}
		if len(p.fired) != 1 || p.fired[0] < want[i] || p.fired[0] > want[i]+tickMilli+3 {
			t.Errorf("timer %d: deadline %d, fired at %v", i, want[i], p.fired)
		}
	}
}

func TestTimerSurvivesALongSleep(t *testing.T) {
	now := int64(5)
	var w wheel
	w.init(now)
	p := &alarm{now: &now}
	p.owner = p
	w.set(&p.timer, now+100)
	now += 10 * wheelSlots * tickMilli
	w.advance(now)
	if len(p.fired) != 1 {
		t.Errorf("fired %v, want once", p.fired)
	}
}
