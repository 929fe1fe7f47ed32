package ports

import (
	"errors"
	"fmt"
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
// closed. So the process first directs new connections to the next process, and empties its queue before it closes.
type sharedPort struct{ *net.TCPListener }

func (p sharedPort) Leave() error { return p.on(steerAway) }

// The queue counts as empty when it was empty for settled, longer than a TCP handshake on one machine. Empty looks every
// emptyPause, and gives up after emptyTimeout, because a server that has reached submitters.connections accepts no more
// connections.
const settled, emptyTimeout, emptyPause = 20 * time.Millisecond, time.Second, 2 * time.Millisecond

// Empty drops further SYNs, and waits until the connections in the queue are accepted. Clients retransmit
// a dropped SYN after a second, and then connect to another process.
func (p sharedPort) Empty() error {
	if err := p.on(ignoreRequests); err != nil {
		return err
	}
	begun := time.Now()
	for last := begun; time.Since(last) < settled; time.Sleep(emptyPause) {
		var n int
		if err := p.on(func(fd int) (err error) { n, err = queued(fd); return err }); err != nil {
			return err
		}
		if n > 0 {
			last = time.Now()
		}
		if n > 0 && time.Since(begun) > emptyTimeout {
			return fmt.Errorf("%d connections are still queued", n)
		}
	}
	return nil
}

func (p sharedPort) on(f func(fd int) error) error {
	c, err := p.SyscallConn()
	if err != nil {
		return err
	}
	return onSocket(c, f)
}

// heldPort is a port that another process, such as systemd, keeps open. Connections that are
// not accepted here wait for the next process.
type heldPort struct {
	net.Listener
	closed chan struct{}
	once   sync.Once
}

// Accept returns no error between Leave and Close: after an error, the server would close its
// connections.
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
