package proxy

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"example.org/pilotfish/internal/health"
	"example.org/pilotfish/internal/settings"
)

// Lookups is a health.Lookups that is safe for concurrent use. Jobs and polls share one. The zero value is ready to use.
type Lookups struct {
	mu    sync.Mutex
	names health.Lookups
}

// Over returns a dialFunc that records the look-ups of another one.
func (l *Lookups) Over(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if hasName(address) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.names.Dialed(time.Now(), err)
		}
		return c, err
	}
}

// IsShortage is health.Lookups.IsShortage.
func (l *Lookups) IsShortage(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names.IsShortage(time.Now(), err)
}

// hasName reports whether an address contains a name, which must be resolved, and not an IP address or a path.
func hasName(address string) bool {
	if _, local := settings.UnixPath(address); local {
		return false
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = netip.ParseAddr(host)
	return err != nil
}
