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
		if !w.roomForClient(0) {
			return // balance takes the listener out
		}
		fd, e := sysAccept(l.fd, &w.accepted)
		switch e {
		case 0:
			if w.clients+w.backends >= w.server.descriptorsMax {
				w.evictIdle()
			}
			w.open(fd, l)
		case unix.EAGAIN:
			l.burst = max(i, 1)
			return
		default: // EMFILE, ENFILE, ENOBUFS, ENOMEM: make way, or try again in a while
			if w.evictIdle() {
				continue
			}
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
	l.leave()
}

// leave takes the listener out of the epoll set. The wake-up for what still waits
// in the backlog was this worker's alone (EPOLLEXCLUSIVE): the others are told to
// look.
func (l *listener) leave() {
	if !l.added {
		return
	}
	l.enable(false)
	if l.w.server.config.Accept != AcceptHash {
		l.w.notifyOthers()
	}
}

// acceptNow looks into the backlogs without a wake-up.
func (w *Worker) acceptNow() {
	for _, l := range w.listeners {
		if l.added {
			l.event(unix.EPOLLIN)
		}
	}
}

func (w *Worker) notifyOthers() {
	for _, other := range w.server.workers {
		if other != w {
			other.notify()
		}
	}
}

// roomForClient reports whether descriptors are left for one more client and slack
// more. Idle connections to endpoints take no room: they make way.
func (w *Worker) roomForClient(slack int) bool {
	busy := w.backends - w.clusters.Idle
	return w.clients+slack < w.server.clientsMax && w.clients+busy+slack < w.server.descriptorsMax
}

// balance decides once a turn from which listeners the worker accepts.
func (w *Worker) balance() {
	slack := 0
	if w.full { // else one that comes for one that goes would wake everybody
		slack = min(w.server.clientsMax, w.server.descriptorsMax) / 16
	}
	room := w.roomForClient(slack)
	if !room && !w.full {
		w.local.acceptPaused++
	}
	w.full = !room
	turn := w.server.config.Accept != AcceptFountain || w.server.fountainReaches(w.id, w.clients, !room)
	for _, l := range w.listeners {
		switch {
		case w.now < l.retryAt:
		case turn && room:
			l.retryAt = 0
			l.enable(true)
		default:
			l.retryAt = 0
			l.leave()
		}
	}
}

// fountainReaches reports whether worker id accepts now: all workers before it
// hold their share. clients is what the worker itself holds, noRoom that it can't
// hold more; on crossing the mark it wakes the others, which look again.
func (s *Server) fountainReaches(id, clients int, noRoom bool) bool {
	mark := s.config.FountainMark
	if s.full[id].Load() {
		mark -= mark / 8 // else one connection more or less would wake everybody
	}
	full := clients >= mark || noRoom
	if s.full[id].Swap(full) != full {
		s.workers[id].notifyOthers()
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
