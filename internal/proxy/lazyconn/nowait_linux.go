package lazyconn

import (
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const canTryRead = true

// tryRead reads what has come; p is not empty. The error is errAgain if nothing has come.
func tryRead(fd uintptr, p []byte) (int, error) {
	n, err := call("read", unix.SYS_RECVFROM, fd, p, 0)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// tryWrite writes what the socket takes now, and returns how much that is. The error is
// errAgain if that is not all.
func tryWrite(fd uintptr, p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		var n int
		n, err = call("write", unix.SYS_SENDTO, fd, p[written:], unix.MSG_NOSIGNAL)
		written += n
	}
	return written, err
}

// peek looks at what has come without reading it, and returns how much that is, up
// to one byte: 0 is the end. The error is errAgain if nothing has come.
func peek(fd uintptr) (int, error) {
	return call("peek", unix.SYS_RECVFROM, fd, make([]byte, 1), unix.MSG_PEEK)
}

// call makes a system call that receives or sends bytes, and returns how many. The error is errAgain
// if that would have to wait.
//
// The calls do not wait, whatever the mode of the socket: each takes a few microseconds. So
// it need not be announced to Go's scheduler, as syscall.Read and syscall.Write do. The
// announcement takes time itself. Moreover, the thread that looks for long calls looks every 20
// microseconds as long as it finds some call under way, which a busy sidecar always has.
// The calls for sockets are quicker than read and write, which are for all files.
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
