package lazyconn

import (
	"errors"
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const canTryRead = true

// tryRead reads what has come; p is not empty. The error is errAgain if nothing has come.
func tryRead(fd uintptr, p []byte) (int, error) {
	for {
		n, errno := read(fd, p)
		switch errno {
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, errAgain
		case 0:
			if n == 0 {
				return 0, io.EOF
			}
			return n, nil
		default:
			return 0, os.NewSyscallError("read", errno)
		}
	}
}

// tryWrite writes what the socket takes now, and returns how much that is. The error is
// errAgain if that is not all.
func tryWrite(fd uintptr, p []byte) (int, error) {
	for written := 0; ; {
		n, errno := write(fd, p[written:])
		switch errno {
		case syscall.EINTR:
		case syscall.EAGAIN:
			return written, errAgain
		case 0:
			if written += n; written == len(p) {
				return written, nil
			}
		default:
			return written, os.NewSyscallError("write", errno)
		}
	}
}

// peek looks at what has come without reading it, and returns how much that is, up
// to one byte: 0 is the end. The error is errAgain if nothing has come.
func peek(fd uintptr) (int, error) {
	for {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return 0, errAgain
		default:
			return max(n, 0), err
		}
	}
}

// The calls do not wait, whatever the mode of the socket: each takes a few microseconds. So
// it need not be announced to Go's scheduler, as syscall.Read and syscall.Write do. The
// announcement takes time itself. Moreover, the thread that looks for long calls looks every 20
// microseconds as long as it finds some call under way, which a busy sidecar always has.
// The calls for sockets are quicker than read and write, which are for all files.

func read(fd uintptr, p []byte) (int, syscall.Errno) {
	return call(unix.SYS_RECVFROM, fd, p, unix.MSG_DONTWAIT)
}

func write(fd uintptr, p []byte) (int, syscall.Errno) {
	return call(unix.SYS_SENDTO, fd, p, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// call makes a system call that receives or sends bytes, and returns how many.
func call(number, fd uintptr, p []byte, flags uintptr) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall6(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
	return int(n), errno
}
