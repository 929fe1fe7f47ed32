package lazyconn

import (
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const canTryRead = true

// tryRead reads available data; p must not be empty. It returns errAgain if there is none.
func tryRead(fd uintptr, p []byte) (int, error) {
	n, err := call("read", unix.SYS_RECVFROM, fd, p, 0)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// tryWrite writes as much of p as the socket takes now. It returns errAgain if that is not
// all.
func tryWrite(fd uintptr, p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		var n int
		n, err = call("write", unix.SYS_SENDTO, fd, p[written:], unix.MSG_NOSIGNAL)
		written += n
	}
	return written, err
}

// peek checks for available data without reading it. It returns 1 if there is data, 0 at the
// end of the connection, and errAgain if there is neither.
func peek(fd uintptr) (int, error) {
	return call("peek", unix.SYS_RECVFROM, fd, make([]byte, 1), unix.MSG_PEEK)
}

// call makes a system call that receives or sends bytes, and returns their number. It returns
// errAgain if the call would block.
//
// With MSG_DONTWAIT the calls never block and take a few microseconds, so they do not notify Go's
// scheduler as syscall.Read and syscall.Write do. The notification takes time itself, and
// while there are such calls the scheduler's monitor thread wakes up every 20
// microseconds. The system calls for sockets are also faster than read and write.
func call(name string, number, fd uintptr, p []byte, flags uintptr) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)),
			flags|unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, errAgain
		default:
			return 0, os.NewSyscallError(name, errno)
		}
	}
}
