//go:build unix

package lazyconn

import (
	"errors"
	"io"
	"os"
	"syscall"
)

const canTryRead = true

// tryRead reads what has come. The error is errAgain if that is nothing.
func tryRead(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(fd), p)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return 0, errAgain
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
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
