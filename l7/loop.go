package l7

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// run is the event loop. It returns when the worker was killed, or drains and has
// no connection left.
func (w *Worker) run() error {
	runtime.LockOSThread() // never unlocked: the thread ends with the loop, pinned as it is
	w.pin()
	defer w.closeAll()
	w.tick()
	w.wheel.tick = w.now / tickMilli
	w.balance()
	for {
		n, err := w.wait()
		if err != nil {
			return err
		}
		w.tick()
		w.dispatch(w.events[:n])
		w.wheel.advance(w.now)
		w.serveRunnable()
		w.endTurn(n)
		if w.done() {
			return nil
		}
	}
}

// wait returns the number of events that came, or 0 if a timer is due. A busy loop
// only naps; when nothing comes for a while it lets go of its P and sleeps.
func (w *Worker) wait() (int, error) {
	t := w.timeout()
	nap := napMilli
	if t >= 0 {
		nap = min(t, nap)
	}
	n, e := sysEpollNap(w.epfd, w.events[:], nap)
	if n == 0 && e == 0 && t != nap {
		w.log.flush(w)
		if t > 0 {
			t -= nap
		}
		w.load.asleep(true, w)
		n, e = sysEpollWait(w.epfd, w.events[:], t)
		w.load.asleep(false, w)
	}
	if e != 0 && e != unix.EINTR {
		return 0, fmt.Errorf("worker %d: epoll_wait: %w", w.id, e)
	}
	return n, nil
}

// timeout is how long the loop may sleep, ms.
func (w *Worker) timeout() int {
	if len(w.yielded) > 0 {
		return 0
	}
	t := w.wheel.wait(w.now)
	before := func(at int64) {
		if left := int(max(at-w.now, 0)); t < 0 || left < t {
			t = left
		}
	}
	if w.draining {
		before(w.drainEnd)
		if w.clients == 0 {
			before(w.now + 20) // look whether the other workers are done
		}
	}
	if w.buffers.stocked() {
		before(w.trimAt)
	}
	for _, l := range w.listeners {
		if l.retryAt != 0 {
			before(l.retryAt)
		}
	}
	return t
}

func (w *Worker) tick() {
	d := time.Since(w.epoch)
	w.micro = d.Microseconds()
	w.now = w.micro / 1000
}

// dispatch hands out one batch. What it says of upstream connections is noted
// first: no request of this batch is written to one that was closed or that speaks
// unasked, whether it idles already or is about to.
func (w *Worker) dispatch(batch []event) {
	for i := range batch {
		ev := &batch[i]
		if ev.Events&^unix.EPOLLOUT == 0 {
			continue
		}
		if s := &w.slots[ev.Fd]; s.gen == uint32(ev.Pad) {
			if b, ok := s.h.(*backend); ok {
				b.note(ev.Events)
			}
		}
	}
	w.resumeYielded()
	for i := range batch {
		ev := &batch[i]
		if s := &w.slots[ev.Fd]; s.gen == uint32(ev.Pad) && s.h != nil {
			w.used = 0
			s.h.event(ev.Events)
			if len(w.runnable) > 0 {
				w.serveRunnable()
			}
		}
	}
}

// serveRunnable continues clients whose exchange ended while an event of the
// upstream side was handled, the first first.
func (w *Worker) serveRunnable() {
	for i := 0; i < len(w.runnable); i++ {
		c := w.runnable[i]
		w.runnable[i] = nil
		if c.queued {
			c.queued = false
			c.serve()
		}
	}
	w.runnable = w.runnable[:0]
}

func (w *Worker) endTurn(events int) {
	if t := w.server.table.Load(); t != w.seen {
		w.follow(t)
	}
	if w.lost {
		w.lost = false
		w.abandon()
		w.serveRunnable()
	}
	for i, x := range w.graveyard {
		w.graveyard[i] = nil
		w.recycle(x)
	}
	w.graveyard = w.graveyard[:0]
	for i, c := range w.closed {
		w.closed[i] = nil
		if len(w.spare.clients) < 1024 {
			w.spare.clients = append(w.spare.clients, c)
		}
	}
	w.closed = w.closed[:0]
	for i, b := range w.dropped {
		w.dropped[i] = nil
		if len(w.spare.backends) < 1024 {
			w.spare.backends = append(w.spare.backends, b)
		}
	}
	w.dropped = w.dropped[:0]
	if w.now >= w.trimAt {
		w.trimAt = w.now + 5000
		w.buffers.trim()
	}
	w.balance()
	w.local.turns++
	w.local.events += uint64(events)
	w.publish()
	w.log.flushIfFull(w)
}

// done reports whether the loop may end.
func (w *Worker) done() bool {
	if w.killed {
		return true
	}
	if !w.draining {
		return false
	}
	if w.now >= w.drainEnd {
		return true
	}
	if w.clients > 0 || !w.server.drainOver() {
		return false
	}
	w.acceptNow() // whoever came since is served too
	return w.clients == 0
}

// closeAll ends every connection of the worker.
func (w *Worker) closeAll() {
	for fd := range w.slots {
		if c, ok := w.slots[fd].h.(*client); ok {
			c.close() // takes its exchange with it
		}
	}
	for fd := range w.slots {
		switch h := w.slots[fd].h.(type) {
		case *backend:
			h.close()
		case *probe:
			h.end(answered)
		}
	}
	w.endTurn(0)
	w.log.flush(w)
	sysClose(w.epfd)
}
