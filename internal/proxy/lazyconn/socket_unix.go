//go:build unix && !linux

package lazyconn

import (
	"errors"
	"syscall"
)

func read(fd uintptr, p []byte) (int, syscall.Errno) {
	n, err := syscall.Read(int(fd), p)
	return n, number(err)
}

func write(fd uintptr, p []byte) (int, syscall.Errno) {
	n, err := syscall.Write(int(fd), p)
	return n, number(err)
}

// number is the number of an error of a system call; 0 is none.
func number(err error) (errno syscall.Errno) {
	_ = errors.As(err, &errno) // it is 0 if there is no error
	return errno
}
