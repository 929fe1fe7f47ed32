package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"example.org/pilotfish/internal/config"
)

// ports are what a process listens on; nil until they are open. There is no
// mesh port unless it is configured.
type ports struct{ jobs, admin, mesh net.Listener }

// activated takes over the sockets of socket activation (sd_listen_fds(3)), which
// systemd has opened for this process. The name of a socket, jobs or admin, says
// what it is for. Sockets with other names are taken in that order.
func activated() (ports, error) {
	var p ports
	for _, f := range activation.Files(true) {
		if err := p.take(f); err != nil {
			p.Close()
			return ports{}, fmt.Errorf("socket activation: %w", err)
		}
	}
	return p, nil
}

func (p *ports) take(f *os.File) error {
	defer f.Close() // the listener has a descriptor of its own
	l, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("socket %q: %w", f.Name(), err)
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		_ = l.Close()
		return fmt.Errorf("socket %q: %s is not a TCP port", f.Name(), l.Addr())
	}
	admin := f.Name() == "admin" || f.Name() != "jobs" && p.jobs != nil
	switch {
	case admin && p.admin == nil:
		p.admin = tcp // served to the end, so that readiness is seen to fail
	case !admin && p.jobs == nil:
		p.jobs = newHeldPort(tcp)
	default:
		_ = l.Close()
		return fmt.Errorf("socket %q on %s: there is a socket for this purpose already; pilotfish takes one for jobs and one for admin", f.Name(), l.Addr())
	}
	return nil
}

func (p *ports) Close() {
	for _, l := range []net.Listener{p.jobs, p.admin, p.mesh} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// open opens the ports that systemd has not opened.
func (p *ports) open(cfg *config.Config) (err error) {
	if p.jobs == nil {
		if p.jobs, err = listen(cfg.Listen, "--listen", cfg.ReusePort); err != nil {
			return err
		}
	}
	if p.admin == nil {
		if p.admin, err = listen(cfg.Admin, "--admin", cfg.ReusePort); err != nil {
			return err
		}
	}
	switch {
	case cfg.Mesh.Listen == "":
	case cfg.Mesh.Address().Network() == "unix":
		p.mesh, err = listenLocally(cfg.Mesh.Address().String(), cfg.ReusePort)
	default:
		p.mesh, err = listen(cfg.Mesh.Listen, "mesh.listen", cfg.ReusePort)
	}
	return err
}

// listen opens a port; flag is what changes its address. A shared one can be
// opened by several processes of one user.
func listen(address, flag string, shared bool) (net.Listener, error) {
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

// listenLocally opens a socket in the file system. One that a process has left
// behind makes room; so does one that is still served, if it is shared: its
// process keeps the connections that it has.
func listenLocally(path string, shared bool) (net.Listener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		_ = c.Close()
		if !shared {
			return nil, fmt.Errorf("cannot listen on %s: another process serves it; choose another path with mesh.listen", path)
		}
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("cannot listen on %s: %w", path, err)
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another path with mesh.listen", path, errors.Unwrap(err))
	}
	l.SetUnlinkOnClose(!shared) // the path may be the next process's by then
	return l, nil
}

// addresses are the host:port of all ports, once they are open.
func (p *ports) addresses() (all []string) {
	for _, l := range []net.Listener{p.jobs, p.admin, p.mesh} {
		if l != nil && l.Addr().Network() == "tcp" {
			all = append(all, l.Addr().String())
		}
	}
	return all
}

// notify tells systemd how far this process is, if it was asked to.
func notify(log *zap.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd was not notified", zap.String("state", state), zap.Error(err))
	}
}
