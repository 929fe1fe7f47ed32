package ports

import (
	"os"

	"golang.org/x/sys/unix"
)

// share lets other processes of this user open the same port.
func share(fd int) error {
	return os.NewSyscallError("SO_REUSEPORT", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
}

// steerAway directs new connections to the process that opened the port second.
// Linux numbers the listeners of a port in the order in which they were opened,
// and renumbers them when one is closed, so that the old process is
// number 0 and its successor 1. If there is no number 1, nothing changes.
func steerAway(fd int) error {
	program := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 1}}
	return os.NewSyscallError("SO_ATTACH_REUSEPORT_CBPF", unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET,
		unix.SO_ATTACH_REUSEPORT_CBPF, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}))
}
