package ports

import (
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// share lets other processes of this user open the same port.
func share(fd int) error {
	return os.NewSyscallError("SO_REUSEPORT", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1))
}

// unsteer detaches the program that steerAway of an earlier process attached. Otherwise a process that starts would
// get all new connections at once.
func unsteer(fd int) error {
	return os.NewSyscallError("SO_DETACH_REUSEPORT_BPF", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_REUSEPORT_BPF, 0))
}

// ignoreRequests drops SYNs (without ACK) that arrive at a socket. Handshakes in progress continue.
func ignoreRequests(fd int) error {
	const flags, syn, ack = 13, 0x02, 0x10 // offset in the TCP header, and bits
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: flags},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: syn | ack},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: syn, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0}, // drop
		{Code: unix.BPF_RET | unix.BPF_K, K: math.MaxUint32},
	}
	return os.NewSyscallError("SO_ATTACH_FILTER", unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}))
}

// queued returns the number of connections that wait to be accepted.
func queued(fd int) (int, error) {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0, os.NewSyscallError("TCP_INFO", err)
	}
	return int(info.Unacked), nil // of a listener: the length of its accept queue
}

// steerAway directs new connections to the process that opened the port second.
// Linux numbers the listeners of a port in the order in which they were opened,
// and renumbers them when one is closed, so that the old process is
// number 0 and its successor 1. If there is no number 1, Linux
// distributes connections as without the program.
func steerAway(fd int) error {
	program := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 1}}
	return os.NewSyscallError("SO_ATTACH_REUSEPORT_CBPF", unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET,
		unix.SO_ATTACH_REUSEPORT_CBPF, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}))
}
