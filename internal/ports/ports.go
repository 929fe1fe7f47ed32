// Package ports opens the listeners of a process: TCP ports and Unix sockets. It supports
// socket activation by systemd, and can share ports with the next process, so that no job
// is refused during a restart.
package ports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
	"go.uber.org/zap"

	"example.org/pilotfish/internal/settings"
)

// Ports are the listeners of a process; nil while they are not open. Mesh stays nil if it
// is not configured.
type Ports struct{ Jobs, Admin, Mesh net.Listener }

// Config has the addresses to listen on.
type Config struct {
	// Jobs, Admin and Mesh are host:port, or unix: and a path. Mesh may be empty.
	Jobs, Admin, Mesh string
	// Shared allows another process of the same user to open the same ports (SO_REUSEPORT).
	Shared bool
}

// Activated takes over the sockets of socket activation (sd_listen_fds(3)), which
// systemd has opened for this process. The name of a socket, jobs or admin, says
// what it is for. Sockets with other names are assigned in that order.
func Activated() (Ports, error) {
	var p Ports
	for _, f := range activation.Files(true) {
		if err := p.take(f); err != nil {
			p.Close()
			return Ports{}, fmt.Errorf("socket activation: %w", err)
		}
	}
	return p, nil
}

func (p *Ports) take(f *os.File) error {
	defer f.Close() // the listener has its own descriptor
	l, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("socket %q: %w", f.Name(), err)
	}
	admin := f.Name() == "admin" || f.Name() != "jobs" && p.Jobs != nil
	switch {
	case admin && p.Admin == nil:
		p.Admin = l // served until the end, so that readiness probes fail instead of timing out
	case !admin && p.Jobs == nil:
		p.Jobs = &heldPort{Listener: l, closed: make(chan struct{})}
	default:
		_ = l.Close()
		return fmt.Errorf("socket %q on %s: there is already a socket for this purpose; pilotfish takes one for jobs and one for admin", f.Name(), l.Addr())
	}
	return nil
}

// Close closes all open ports.
func (p *Ports) Close() {
	for _, l := range p.all() {
		_ = l.Close()
	}
}

// Open opens the ports that systemd has not opened.
func (p *Ports) Open(c Config) (err error) {
	for _, port := range []struct {
		to            *net.Listener
		address, flag string
	}{{&p.Jobs, c.Jobs, "--listen"}, {&p.Admin, c.Admin, "--admin"}, {&p.Mesh, c.Mesh, "mesh.listen"}} {
		if *port.to == nil && port.address != "" && err == nil {
			*port.to, err = listen(port.address, port.flag, c.Shared)
		}
	}
	return err
}

// Leave stops accepting on ports that another process holds, and directs new connections to the process that opened a
// shared port after this one. Accepted connections are still served.
func (p *Ports) Leave(log *zap.Logger) {
	for _, l := range p.all() {
		if other, ok := l.(interface{ Leave() error }); ok {
			warnOfLoss(log, l, other.Leave())
		}
	}
}

// Empty waits until all connections to shared ports are accepted, so that Close loses none.
func (p *Ports) Empty(log *zap.Logger) {
	for _, l := range p.all() {
		if shared, ok := l.(sharedPort); ok {
			warnOfLoss(log, l, shared.Empty())
		}
	}
}

func warnOfLoss(log *zap.Logger, l net.Listener, err error) {
	if err != nil {
		log.Warn("connections that were not accepted yet may be lost", zap.Stringer("port", l.Addr()), zap.Error(err))
	}
}

func (p *Ports) all() []net.Listener {
	return slices.DeleteFunc([]net.Listener{p.Jobs, p.Admin, p.Mesh}, func(l net.Listener) bool { return l == nil })
}

// Addresses returns the addresses of all open ports.
func (p *Ports) Addresses() (all []string) {
	for _, l := range p.all() {
		all = append(all, Address(l))
	}
	return all
}

// Address returns a listener's address in the format of the configuration.
func Address(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	return l.Addr().String()
}

// listen opens a TCP port or a Unix socket; flag is the flag or key of its address, for
// messages. A shared port can be opened by several processes of one user.
func listen(address, flag string, shared bool) (net.Listener, error) {
	if path, local := settings.UnixPath(address); local {
		return listenLocally(path, flag, shared)
	}
	var lc net.ListenConfig
	if shared {
		lc.SetMultipathTCP(false) // steerAway does not work with it
		lc.Control = func(_, _ string, c syscall.RawConn) error { return onSocket(c, share) }
	}
	l, err := lc.Listen(context.Background(), "tcp", address)
	if err != nil {
		hint := "choose another address with " + flag
		if shared && errors.Is(err, syscall.EADDRINUSE) {
			hint = "the process there must have been started with --reuse-port too, by the same user; or " + hint
		}
		return nil, fmt.Errorf("cannot listen on %s: %w; %s", address, errors.Unwrap(err), hint)
	}
	if shared {
		port := sharedPort{l.(*net.TCPListener)}
		_ = port.on(unsteer) // fails if no process has called Leave on the port
		return port, nil
	}
	return l, nil
}

// socketMode permits the process's user and group to connect.
const socketMode = 0o660

// listenLocally opens a Unix socket. It replaces a socket that a dead process has left
// behind, and if it is shared, also one that is still served: its
// process keeps its connections.
func listenLocally(path, flag string, shared bool) (net.Listener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		if !shared {
			return nil, fmt.Errorf("cannot listen on %s: another process serves it; choose another path with %s", path, flag)
		}
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		_ = os.Remove(path) // if it fails, ListenUnix fails too
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another path with %s", path, errors.Unwrap(err), flag)
	}
	l.SetUnlinkOnClose(!shared) // a shared path can belong to the next process by then
	if err := os.Chmod(path, socketMode); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("cannot listen on %s: %w", path, err)
	}
	return l, nil
}
