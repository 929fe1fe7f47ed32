package fakeupstream

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// awaitSent waits until the peer has received what was written to c, or has
// left, but for 5 s at most: a peer that does not read never receives all.
func awaitSent(c *net.TCPConn, gone <-chan struct{}) {
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	look, enough := time.NewTicker(100*time.Microsecond), time.NewTimer(5*time.Second)
	defer look.Stop()
	defer enough.Stop()
	for {
		unsent := 0
		err := raw.Control(func(fd uintptr) { unsent, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
		if err != nil || unsent == 0 {
			return
		}
		select {
		case <-look.C:
		case <-enough.C:
			return
		case <-gone:
			return
		}
	}
}
