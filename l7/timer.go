package l7

import "math/bits"

const (
	tickMilli  = 8    // granularity
	wheelSlots = 1024 // horizon: 8.2 s; what is farther is looked at again then
)

// expirer is what a timer belongs to.
type expirer interface{ expired() }

// timer fires once at its deadline. It is part of its owner, costs no
// allocation, and setting it later than before is one store: the wheel finds out
// when it comes round.
type timer struct {
	at         int64 // deadline in worker ms, 0: off
	linked     int64 // when the wheel looks at it, 0: not linked
	next, prev *timer
	owner      expirer
}

// wheel is a hashed timing wheel of one worker.
type wheel struct {
	slots [wheelSlots]timer // list heads
	used  [wheelSlots / 64]uint64
	tick  int64 // the last tick that was handled
}

func (w *wheel) init(now int64) {
	for i := range w.slots {
		w.slots[i].next = &w.slots[i]
		w.slots[i].prev = &w.slots[i]
	}
	w.tick = now / tickMilli
}

// set makes t fire at the ms at, or never if at is 0.
func (w *wheel) set(t *timer, at int64) {
	t.at = at
	if at == 0 || (t.linked != 0 && t.linked <= at) {
		return
	}
	w.unlink(t)
	w.link(t)
}

// stop unlinks t for good.
func (w *wheel) stop(t *timer) {
	t.at = 0
	w.unlink(t)
}

func (w *wheel) unlink(t *timer) {
	if t.linked == 0 {
		return
	}
	t.prev.next, t.next.prev = t.next, t.prev
	if t.next == t.prev { // only the head is left
		i := t.linked / tickMilli % wheelSlots
		w.used[i/64] &^= 1 << (i % 64)
	}
	t.linked, t.next, t.prev = 0, nil, nil
}

func (w *wheel) link(t *timer) {
	tick := (t.at + tickMilli - 1) / tickMilli
	tick = max(tick, w.tick+1)
	tick = min(tick, w.tick+wheelSlots-1)
	t.linked = tick * tickMilli
	i := tick % wheelSlots
	head := &w.slots[i]
	t.prev, t.next = head.prev, head
	head.prev.next = t
	head.prev = t
	w.used[i/64] |= 1 << (i % 64)
}

// advance fires what is due at now.
func (w *wheel) advance(now int64) {
	to := now / tickMilli
	if to-w.tick >= wheelSlots { // slept longer than a round: each slot once
		w.tick = to - wheelSlots
	}
	for w.tick < to {
		w.tick++
		i := w.tick % wheelSlots
		if w.used[i/64]&(1<<(i%64)) == 0 {
			continue
		}
		head := &w.slots[i]
		for t := head.next; t != head; t = head.next {
			w.unlink(t)
			switch {
			case t.at == 0:
			case t.at <= now:
				t.at = 0
				t.owner.expired()
			default:
				w.link(t) // at least one tick ahead, so not in this slot
			}
		}
	}
}

// wait returns the ms from now until the wheel must be looked at, -1: no timer.
func (w *wheel) wait(now int64) int {
	start := (w.tick + 1) % wheelSlots
	for n := int64(0); n < wheelSlots; {
		i := (start + n) % wheelSlots
		if word := w.used[i/64] >> (i % 64); word != 0 {
			n += int64(bits.TrailingZeros64(word))
			if n >= wheelSlots {
				break
			}
			return int(max((w.tick+1+n)*tickMilli-now, 0))
		}
		n += 64 - i%64
	}
	return -1
}
