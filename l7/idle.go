package l7

import "github.com/weirproxy/weir/l7/upstream"

// idleList holds the worker's idle connections to endpoints, of all pools, the
// longest idle first.
type idleList struct{ oldest, newest *backend }

func (l *idleList) push(b *backend) {
	b.older, b.newer = l.newest, nil
	if l.newest != nil {
		l.newest.newer = b
	} else {
		l.oldest = b
	}
	l.newest = b
}

func (l *idleList) remove(b *backend) {
	if b.older != nil {
		b.older.newer = b.newer
	} else {
		l.oldest = b.newer
	}
	if b.newer != nil {
		b.newer.older = b.older
	} else {
		l.newest = b.older
	}
	b.older, b.newer = nil, nil
}

// rest stores an idle connection in its pool, or closes it if it has served long
// enough.
func (b *backend) rest() {
	w := b.w
	u := &w.server.config.Upstream
	if b.requests >= u.RequestsMax || w.now-b.opened >= u.LifetimeMax.Milliseconds() ||
		w.clusters.Idle >= u.IdleMax || b.peer.State != upstream.Active {
		b.close()
		return
	}
	b.pooled = true
	w.idle.push(b)
	w.clusters.Put(b.peer, b.fd)
	w.wheel.set(&b.timer, w.now+u.IdleTimeout.Milliseconds())
}

// takeIdle returns an idle connection to p, or nil.
func (w *Worker) takeIdle(p *upstream.Peer) *backend {
	fd := w.clusters.Take(p)
	if fd < 0 {
		return nil
	}
	b := w.slots[fd].h.(*backend)
	b.pooled = false
	w.idle.remove(b)
	return b
}

// dropIdle closes the idle connections of a peer that takes no more requests or
// does not answer.
func (w *Worker) dropIdle(p *upstream.Peer) {
	for idle := p.IdleOf(); len(idle) > 0; idle = p.IdleOf() {
		b, ok := w.slots[idle[len(idle)-1]].h.(*backend)
		if !ok || b.peer != p {
			panic("l7: a pool holds a descriptor that is not its own")
		}
		b.close()
	}
}

// evictIdle closes the connection that has been idle for longest, so that its
// descriptor can serve another purpose, and reports whether there was one.
func (w *Worker) evictIdle() bool {
	b := w.idle.oldest
	if b == nil {
		return false
	}
	b.close()
	w.local.evicted++
	return true
}

// roomForBackend reports whether the worker may open one more connection to an
// endpoint; an idle one makes way for it.
func (w *Worker) roomForBackend() bool {
	return w.clients+w.backends < w.server.descriptorsMax || w.evictIdle()
}
