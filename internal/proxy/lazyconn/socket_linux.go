package lazyconn

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
