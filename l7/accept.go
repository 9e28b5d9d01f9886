package l7

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// burstMax bounds what a worker accepts at one event; where workers share the
// socket, a small burst leaves some for the others.
const (
	burstMax       = 64
	burstMaxShared = 8
)

// listener is a listening socket in one worker's epoll set.
type listener struct {
	w    *Worker
	fd   int32
	addr netip.AddrPort

	added   bool  // in the epoll set
	retryAt int64 // ms: accepting is paused until then
	burst   int   // accepts to try at the next event
	misses  int   // connections in a row that had sent nothing when accepted
}

// addListener makes the worker accept from fd.
func (w *Worker) addListener(fd int, addr netip.AddrPort) {
	l := &listener{w: w, fd: int32(fd), addr: addr, burst: 1}
	w.listeners = append(w.listeners, l)
	w.attach(l.fd, l)
}

func (l *listener) enable(on bool) {
	if on == l.added {
		return
	}
	l.added = on
	if !on {
		sysEpollDel(l.w.epfd, l.fd)
		return
	}
	events := uint32(unix.EPOLLIN)
	if l.w.server.config.Accept != AcceptHash {
		events |= unix.EPOLLEXCLUSIVE // Linux 4.5: wakes one worker, not all
	}
	sysEpollAdd(l.w.epfd, l.fd, l.w.slots[l.fd].gen, events)
}

// event accepts. A burst that was used up doubles; one that met the end of the
// backlog shrinks to what there was, so that a lone connection costs no second
// accept4.
func (l *listener) event(uint32) {
	w := l.w
	for i := range l.burst {
		if !w.roomForClient() {
			w.local.acceptPaused++
			l.pause()
			return
		}
		fd, e := sysAccept(l.fd, &w.accepted)
		switch e {
		case 0:
			w.open(fd, l)
		case unix.EAGAIN:
			l.burst = max(i, 1)
			return
		default: // EMFILE, ENFILE, ENOBUFS, ENOMEM: try again in a while
			w.local.acceptPaused++
			l.pause()
			return
		}
	}
	limit := burstMax
	if w.server.config.Accept != AcceptHash && len(w.server.workers) > 1 {
		limit = burstMaxShared
	}
	l.burst = min(l.burst*2, limit)
}

// pause stops accepting for a tenth of a second.
func (l *listener) pause() {
	l.retryAt = l.w.now + 100
	l.enable(false)
}

// roomForClient reports whether descriptors are left for one more client and the
// endpoint that it will need.
func (w *Worker) roomForClient() bool {
	return w.clients < w.server.clientsMax && w.clients+w.backends < w.server.descriptorsMax
}

// balance decides once a turn from which listeners the worker accepts.
func (w *Worker) balance() {
	turn := w.server.config.Accept != AcceptFountain || w.server.fountainReaches(w.id, w.clients)
	for _, l := range w.listeners {
		switch {
		case l.retryAt != 0 && w.now < l.retryAt:
		case l.retryAt != 0:
			l.retryAt = 0
			l.enable(turn)
		case l.added != turn:
			l.enable(turn)
		}
	}
}

// fountainReaches reports whether worker id accepts now: all workers before it
// hold their share. clients is what the worker itself holds; on crossing the mark
// it wakes the others, which look again.
func (s *Server) fountainReaches(id, clients int) bool {
	mark := s.config.FountainMark
	if s.full[id].Load() {
		mark -= mark / 8 // else one connection more or less would wake everybody
	}
	full := clients >= mark
	if s.full[id].Swap(full) != full {
		for _, w := range s.workers {
			if w.id != id {
				w.notify()
			}
		}
	}
	for i := range id {
		if !s.full[i].Load() {
			return false
		}
	}
	if !full {
		return true
	}
	// It is full itself: it goes on only if everybody is.
	for i := id + 1; i < len(s.workers); i++ {
		if !s.full[i].Load() {
			return false
		}
	}
	return true
}
