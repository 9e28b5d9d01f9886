package l7

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of the data path. All descriptors are non-blocking, so they
// return at once and go through RawSyscall: the Go scheduler needn't know. The
// loop sleeps in sysEpollNap for a moment, in sysEpollWait for longer.

func errnoOf(e syscall.Errno) unix.Errno { return unix.Errno(e) }

// sysRead returns the bytes read, 0 at the end of the stream.
func sysRead(fd int32, p []byte) (int, unix.Errno) {
	for {
		n, _, e := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		if e == 0 {
			return int(n), 0
		}
		if e != syscall.EINTR {
			return 0, errnoOf(e)
		}
	}
}

func sysWrite(fd int32, p []byte) (int, unix.Errno) {
	for {
		n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)),
			unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
		if e == 0 {
			return int(n), 0
		}
		if e != syscall.EINTR {
			return 0, errnoOf(e)
		}
	}
}

func sysWritev(fd int32, v []unix.Iovec) (int, unix.Errno) {
	for {
		n, _, e := syscall.RawSyscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(v))), uintptr(len(v)))
		if e == 0 {
			return int(n), 0
		}
		if e != syscall.EINTR {
			return 0, errnoOf(e)
		}
	}
}

// sysAccept returns the next connection of a listener and its peer's address.
func sysAccept(fd int32, sa *unix.RawSockaddrAny) (int32, unix.Errno) {
	for {
		size := uint32(unix.SizeofSockaddrAny)
		n, _, e := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), uintptr(unsafe.Pointer(sa)), uintptr(unsafe.Pointer(&size)),
			unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
		if e == 0 {
			return int32(n), 0
		}
		if e != syscall.EINTR && e != syscall.ECONNABORTED {
			return -1, errnoOf(e)
		}
	}
}

func sysClose(fd int32) { syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

func sysShutdownWrite(fd int32) {
	syscall.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_WR, 0)
}

// sysReset makes the close that follows send RST instead of FIN.
func sysReset(fd int32) {
	unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}

// event is struct epoll_event (packed on amd64, as unix.EpollEvent is); tag is
// the descriptor in the low half and its generation in the high half.
type event = unix.EpollEvent

func sysEpollAdd(epfd, fd int32, gen uint32, events uint32) unix.Errno {
	e := event{Events: events, Fd: fd, Pad: int32(gen)}
	_, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(epfd), unix.EPOLL_CTL_ADD, uintptr(fd), uintptr(unsafe.Pointer(&e)), 0, 0)
	return errnoOf(errno)
}

func sysEpollDel(epfd, fd int32) {
	syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(epfd), unix.EPOLL_CTL_DEL, uintptr(fd), 0, 0, 0)
}

// sysEpollNap waits up to milli ms without telling the scheduler, which thinks
// that the loop runs: no P changes hands, and sysmon, which would come every 20 µs
// to take one away, sleeps on. A stop of the world interrupts it: the preemption
// signal ends the call with EINTR, and is sent again until the goroutine stops.
func sysEpollNap(epfd int32, events []event, milli int) (int, unix.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), uintptr(milli), 0, 0)
	if e != 0 {
		return 0, errnoOf(e)
	}
	return int(n), 0
}

// sysEpollWait waits up to milli ms (-1: for ever). It is the one call that tells
// the scheduler, which then runs other goroutines on this thread's P.
func sysEpollWait(epfd int32, events []event, milli int) (int, unix.Errno) {
	n, _, e := syscall.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), uintptr(milli), 0, 0)
	if e != 0 {
		return 0, errnoOf(e)
	}
	return int(n), 0
}
