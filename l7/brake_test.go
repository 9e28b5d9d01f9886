package l7

import (
	"testing"

	"golang.org/x/sys/unix"
)

// brake stops a worker's loop, so that a test decides what one batch of events
// holds.
type brake struct {
	fd      int32
	stopped chan struct{}
	goOn    chan struct{}
}

// fit gives worker 0 of s a brake; s must not run yet.
func (k *brake) fit(t testing.TB, s *Server) {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	k.fd, k.stopped, k.goOn = int32(fd), make(chan struct{}), make(chan struct{})
	w := s.workers[0]
	sysEpollAdd(w.epfd, k.fd, w.attach(k.fd, k), unix.EPOLLIN)
}

func (k *brake) event(uint32) {
	var count [8]byte
	sysRead(k.fd, count[:])
	k.stopped <- struct{}{}
	<-k.goOn
}

// during runs f while the loop stands; what happens meanwhile comes in one batch.
func (k *brake) during(f func()) {
	k.pull()
	<-k.stopped
	f()
	k.goOn <- struct{}{}
}

// pull has the loop stop when it comes to it; k.stopped then tells, and k.goOn lets
// it go on.
func (k *brake) pull() {
	one := [8]byte{1}
	unix.Write(int(k.fd), one[:])
}
