package discovery

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"example.org/pilotfish/internal/settings"
)

// own are the sidecar's own addresses. Its method has knows the names and IP addresses that always lead to this machine:
// localhost, the host name and the addresses of the interfaces. Other names, such as an alias in DNS, are noticed only when a
// connection reaches this sidecar; see Discovery.LeadsHere.
type own struct {
	listeners []listener
	names     []string     // of this machine
	hosts     []netip.Addr // of its interfaces
}

// listener is an address on which the sidecar listens.
type listener struct {
	address string // of a Unix socket, or with a host that is a name
	host    netip.Addr
	port    string
}

// newOwn returns the addresses of a sidecar that listens on listen. A host that is empty or unspecified stands for all
// addresses of this machine.
func newOwn(listen []string, machine func() (names []string, hosts []netip.Addr, err error)) (o own, err error) {
	for _, l := range listen {
		if _, local := settings.UnixPath(l); !local && strings.HasPrefix(l, ":") {
			l = "0.0.0.0" + l
		}
		if host, port, err := net.SplitHostPort(l); err == nil { // no upstream's address has a zone
			if ip, err := netip.ParseAddr(host); err == nil {
				l = net.JoinHostPort(ip.WithZone("").String(), port)
			}
		}
		address, err := settings.Address(l)
		if err != nil {
			return own{}, fmt.Errorf("own address %w", err)
		}
		host, port := split(address)
		o.listeners = append(o.listeners, listener{address, host, port})
	}
	if o.names, o.hosts, err = machine(); err != nil {
		return own{}, fmt.Errorf("this machine's addresses: %w", err)
	}
	return o, nil
}

// split returns the host of an address if it is an IP address, and the port.
func split(address string) (host netip.Addr, port string) {
	text, port, _ := net.SplitHostPort(address)
	host, _ = netip.ParseAddr(text)
	return host, port
}

// has reports whether connections to a canonical address end at the sidecar.
func (o *own) has(address string) bool {
	if len(o.listeners) == 0 {
		return false
	}
	host, port := split(address)
	return slices.ContainsFunc(o.listeners, func(l listener) bool {
		switch {
		case l.address == address:
			return true
		case port == "" || l.port != port || !l.host.IsValid():
			return false
		case !host.IsValid():
			name, _, _ := strings.Cut(address, ":")
			return local(name) && (l.host.IsLoopback() || l.host.IsUnspecified()) || slices.Contains(o.names, name) && l.host.IsUnspecified()
		case host.IsUnspecified(): // leads to this machine's loopback address
			return l.host.IsLoopback() || l.host.IsUnspecified()
		}
		return l.host == host || l.host.IsUnspecified() && (host.IsLoopback() || slices.Contains(o.hosts, host))
	})
}

// local reports whether a name is that of the loopback address (RFC 6761, 6.3, and the hosts file of Debian).
func local(name string) bool {
	name = strings.TrimSuffix(name, ".")
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || name == "localhost.localdomain" || name == "ip6-localhost"
}

// Own returns the indices of the addresses in list at which the sidecar itself listens.
func Own(list, listen []string) (indices []int) {
	fixed := slices.DeleteFunc(listen, func(l string) bool { return strings.HasSuffix(l, ":0") })
	o, _ := newOwn(fixed, thisMachine) // an invalid address is reported by the check of its key
	for i, a := range list {
		if address, wrong := settings.Address(a); wrong == nil && o.has(address) {
			indices = append(indices, i)
		}
	}
	return indices
}

// thisMachine returns the names of this machine, and the addresses of its interfaces.
func thisMachine() (names []string, hosts []netip.Addr, err error) {
	if name, err := os.Hostname(); err == nil { // without one there is no name to compare
		name = strings.ToLower(name)
		short, _, _ := strings.Cut(name, ".")
		names = []string{name, short}
	}
	list, err := net.InterfaceAddrs()
	for _, a := range list {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			hosts = append(hosts, prefix.Addr().Unmap().WithZone(""))
		}
	}
	return names, hosts, err
}
