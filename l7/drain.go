package l7

// drainIdle is how long a keep-alive connection may idle while the server drains,
// ms. A client whose next request is under way at this moment still gets its
// answer, with "Connection: close".
const drainIdle = 1000

// startDrain: from now on each answer is the last of its connection. The worker
// keeps accepting until the server has no connection left.
func (w *Worker) startDrain() {
	w.draining = true
	w.drainEnd = w.now + w.server.config.DrainTimeout.Milliseconds()
	for fd := range w.slots {
		if c, ok := w.slots[fd].h.(*client); ok && c.x == nil && c.mode == clientOpen && c.in.len() == 0 {
			w.wheel.set(&c.timer, w.now+drainIdle)
		}
	}
}

// drainOver reports whether no worker has a connection any more.
func (s *Server) drainOver() bool {
	for _, w := range s.workers {
		if w.counters.connections.Load() != 0 {
			return false
		}
	}
	return true
}
