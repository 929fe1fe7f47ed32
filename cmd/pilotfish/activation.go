package main

import (
	"fmt"
	"net"
	"os"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"
)

// given are the ports that systemd, or whoever speaks its protocol, has opened
// for this process; nil where none was.
type given struct{ jobs, admin net.Listener }

// activated takes over the sockets of socket activation (sd_listen_fds(3)). A
// name, jobs or admin, says what a socket is for; others are taken in that order.
func activated() (given, error) {
	var g given
	for _, f := range activation.Files(true) {
		if err := g.take(f); err != nil {
			g.Close()
			return given{}, fmt.Errorf("socket activation: %w", err)
		}
	}
	return g, nil
}

func (g *given) take(f *os.File) error {
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
	admin := f.Name() == "admin" || f.Name() != "jobs" && g.jobs != nil
	switch {
	case admin && g.admin == nil:
		g.admin = tcp // served to the end, so that readiness is seen to fail
	case !admin && g.jobs == nil:
		g.jobs = newHeldPort(tcp)
	default:
		_ = l.Close()
		return fmt.Errorf("socket %q on %s: one for jobs and one for admin are enough", f.Name(), l.Addr())
	}
	return nil
}

func (g *given) Close() {
	for _, l := range []net.Listener{g.jobs, g.admin} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// open opens the ports that were not given.
func (g *given) open(listenOn, adminOn string, shared bool) (err error) {
	if g.jobs == nil {
		if g.jobs, err = listen(listenOn, "--listen", shared); err != nil {
			return err
		}
	}
	if g.admin == nil {
		g.admin, err = listen(adminOn, "--admin", shared)
	}
	return err
}

// addresses are those of both ports, once they are open.
func (g *given) addresses() []string {
	return []string{g.jobs.Addr().String(), g.admin.Addr().String()}
}

// notify tells systemd how far this process is, if it was asked to.
func notify(log *zap.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn("systemd was not notified", zap.String("state", state), zap.Error(err))
	}
}
