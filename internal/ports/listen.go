package ports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

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
