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
)

// ports are the two that a process serves; nil until they are open.
type ports struct{ jobs, admin net.Listener }

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
	for _, l := range []net.Listener{p.jobs, p.admin} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// open opens the ports that systemd has not opened.
func (p *ports) open(listenOn, adminOn string, shared bool) (err error) {
	if p.jobs == nil {
		if p.jobs, err = listen(listenOn, "--listen", shared); err != nil {
			return err
		}
	}
	if p.admin == nil {
		p.admin, err = listen(adminOn, "--admin", shared)
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

// addresses are those of both ports, once they are open.
func (p *ports) addresses() []string {
	return []string{p.jobs.Addr().String(), p.admin.Addr().String()}
}

// notify tells systemd how far this process is, if it was asked to.
func notify(log *zap.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd was not notified", zap.String("state", state), zap.Error(err))
	}
}
