package ports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"

	"example.org/pilotfish/internal/settings"
)

// listen opens a port, or a socket in the file system; flag is what changes its
// address. A shared one can be opened by several processes of one user.
func listen(address, flag string, shared bool) (net.Listener, error) {
	if path, local := settings.UnixPath(address); local {
		return listenLocally(path, flag, shared)
	}
	var lc net.ListenConfig
	if shared {
		lc.SetMultipathTCP(false) // it cannot be steered
		lc.Control = func(_, _ string, c syscall.RawConn) error { return onSocket(c, share) }
	}
	l, err := lc.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another address with %s", address, errors.Unwrap(err), flag)
	}
	if shared {
		return sharedPort{l.(*net.TCPListener)}, nil
	}
	return l, nil
}

// errServed is a socket in the file system that another process serves.
var errServed = errors.New("another process serves it")

// socketMode lets the process's user and group connect.
const socketMode = 0o660

// listenLocally opens a socket in the file system. One that a process has left
// behind makes room; so does one that is still served, if it is shared: its
// process keeps the connections that it has.
func listenLocally(path, flag string, shared bool) (net.Listener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		if !shared {
			return nil, fmt.Errorf("cannot listen on %s: %w; choose another path with %s", path, errServed, flag)
		}
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("cannot listen on %s: %w", path, err)
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another path with %s", path, errors.Unwrap(err), flag)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("cannot listen on %s: %w", path, err)
	}
	l.SetUnlinkOnClose(!shared) // the path may be the next process's by then
	return l, nil
}

// isTaken reports whether another process has a port.
func isTaken(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, errServed)
}

// retryListen is how often a port that is taken is tried again.
const retryListen = 100 * time.Millisecond

// awaitedPort is a port that another process has. Accept opens it as soon as it is free.
type awaitedPort struct {
	address string
	log     *zap.Logger
	closed  chan struct{}

	mu       sync.Mutex // guards what follows
	listener net.Listener
	ended    bool
}

func awaitPort(address string, log *zap.Logger) *awaitedPort {
	log.Warn("the admin port is taken: by the process that this one replaces, or by another program. It is opened as soon as it is free",
		zap.String("admin", address))
	return &awaitedPort{address: address, log: log, closed: make(chan struct{})}
}

func (p *awaitedPort) Accept() (net.Conn, error) {
	for {
		l, err := p.open()
		switch {
		case err == nil:
			return l.Accept()
		case !isTaken(err):
			return nil, err
		}
		select {
		case <-p.closed:
			return nil, net.ErrClosed
		case <-time.After(retryListen):
		}
	}
}

// open opens the port, unless it is open.
func (p *awaitedPort) open() (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return nil, net.ErrClosed
	case p.listener != nil:
		return p.listener, nil
	}
	l, err := listen(p.address, "--admin", false)
	if err != nil {
		return nil, err
	}
	p.listener = l
	p.log.Info("the admin port is open", zap.Stringer("admin", l.Addr()))
	return l, nil
}

func (p *awaitedPort) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	p.ended = true
	close(p.closed)
	if p.listener == nil {
		return nil
	}
	return p.listener.Close()
}

// Addr is the address that the port will have.
func (p *awaitedPort) Addr() net.Addr { return awaitedAddress(p.address) }

// awaitedAddress is an address as it was written.
type awaitedAddress string

func (a awaitedAddress) Network() string {
	if _, local := settings.UnixPath(string(a)); local {
		return "unix"
	}
	return "tcp"
}

func (a awaitedAddress) String() string { return strings.TrimPrefix(string(a), "unix:") }

// yieldedPort is an admin port that the next process takes over: it is closed when
// this one begins to end, and not only when its jobs have ended.
type yieldedPort struct {
	net.Listener
	left, closed chan struct{}
	leave, close sync.Once
}

func newYieldedPort(l net.Listener) *yieldedPort {
	return &yieldedPort{Listener: l, left: make(chan struct{}), closed: make(chan struct{})}
}

// Accept waits for Close once the port was left: those who wait for replies are served on.
func (p *yieldedPort) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil {
		select {
		case <-p.left:
			<-p.closed
		default:
		}
	}
	return c, err
}

func (p *yieldedPort) Leave() (err error) {
	p.leave.Do(func() {
		close(p.left)
		err = p.Listener.Close()
	})
	return err
}

func (p *yieldedPort) Close() error {
	p.close.Do(func() { close(p.closed) })
	return p.Leave()
}
