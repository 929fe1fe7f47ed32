package main

import (
	"fmt"
	"net"
	"os"

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
	timed, ok := l.(timedListener)
	if !ok {
		_ = l.Close()
		return fmt.Errorf("socket %q: %s takes no connections", f.Name(), l.Addr())
	}
	admin := f.Name() == "admin" || f.Name() != "jobs" && p.jobs != nil
	switch {
	case admin && p.admin == nil:
		p.admin = timed // served to the end, so that readiness is seen to fail
	case !admin && p.jobs == nil:
		p.jobs = newHeldPort(timed)
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
func (p *ports) open(cfg *config.Config, log *zap.Logger) (err error) {
	if p.jobs == nil {
		if p.jobs, err = listen(cfg.Listen, "--listen", cfg.ReusePort); err != nil {
			return err
		}
	}
	if p.admin == nil {
		if p.admin, err = listen(cfg.Admin, "--admin", false); err != nil && cfg.ReusePort && isTaken(err) {
			p.admin, err = awaitPort(cfg.Admin, log), nil
		}
		if err != nil {
			return err
		}
		if cfg.ReusePort {
			p.admin = newYieldedPort(p.admin)
		}
	}
	if cfg.Mesh.Listen != "" {
		p.mesh, err = listen(cfg.Mesh.Listen, "mesh.listen", cfg.ReusePort)
	}
	return err
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
