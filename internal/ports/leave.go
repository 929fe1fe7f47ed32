package ports

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// onSocket calls f with a socket's descriptor.
func onSocket(c syscall.RawConn, f func(fd int) error) error {
	var err error
	if failed := c.Control(func(fd uintptr) { err = f(int(fd)) }); failed != nil {
		return failed
	}
	return err
}

// sharedPort is one process's listener of a port that several processes share. Linux distributes new
// connections over all listeners, and resets those that a listener still queues when it is
// closed. So the process first leaves the group, and then accepts the queued connections.
type sharedPort struct{ *net.TCPListener }

func (p sharedPort) Leave() error {
	c, err := p.SyscallConn()
	if err != nil {
		return err
	}
	return onSocket(c, steerAway)
}

// heldPort is a port that another process, such as systemd, keeps open. Connections that are
// not accepted here wait for the next process.
type heldPort struct {
	net.Listener
	closed chan struct{}
	once   sync.Once
}

// Accept blocks until Close after Leave, because the server would close its connections
// after an error.
func (p *heldPort) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		<-p.closed
		return nil, net.ErrClosed
	}
	return c, err
}

// Leave ends Accept. All listeners of package net have a deadline.
func (p *heldPort) Leave() error {
	return p.Listener.(interface{ SetDeadline(t time.Time) error }).SetDeadline(time.Unix(1, 0))
}

func (p *heldPort) Close() error {
	p.once.Do(func() { close(p.closed) })
	return p.Listener.Close()
}
