//go:build unix

package lazyconn

import (
	"errors"
	"io"
	"os"
	"syscall"
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
