package proxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"

	"example.org/pilotfish/internal/settings"
)

// dialFunc connects to an address until ctx ends.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Elsewhere returns a dialFunc that refuses connections to the sidecar's own listeners, and calls found with their
// addresses. It checks the address after connecting, because 0.0.0.0, other loopback addresses and the machine's names can
// all lead to the sidecar.
func Elsewhere(own []string, dial dialFunc, found func(address string)) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err == nil && endsAt(own, c) {
			_ = c.Close()
			found(address)
			return nil, errors.New("the address is this sidecar's own, which would be a forwarding loop")
		}
		return c, err
	}
}

// endsAt reports whether a connection ends at one of the listeners, which are host:port or unix:PATH.
func endsAt(listeners []string, c net.Conn) bool {
	to, isIP := addrPort(c.RemoteAddr())
	from, _ := addrPort(c.LocalAddr())
	for _, l := range listeners {
		if path, local := settings.UnixPath(l); local {
			if c.RemoteAddr().Network() == "unix" && sameFile(path, c.RemoteAddr().String()) {
				return true
			}
			continue
		}
		at, err := netip.ParseAddrPort(l)
		if err != nil || !isIP || at.Port() != to.Port() {
			continue
		}
		host := at.Addr().Unmap().WithZone("")
		if host == to.Addr() || host.IsUnspecified() && (to.Addr().IsLoopback() || to.Addr() == from.Addr()) {
			return true
		}
	}
	return false
}

// addrPort returns a TCP address in normalised form: unmapped and without a zone.
func addrPort(a net.Addr) (netip.AddrPort, bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	at := tcp.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), true
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}
