package discovery

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// own is the sidecar's own addresses: an upstream among them would be a loop.
type own map[string]bool

// newOwn spells out the addresses on which the sidecar listens. One without a
// host, or with the unspecified one, stands for every address in local;
// a loopback address also goes by the name localhost.
func newOwn(listen []string, local []netip.Addr) (own, error) {
	o := own{}
	for _, l := range listen {
		host, port, err := net.SplitHostPort(l)
		if err != nil {
			return nil, fmt.Errorf("own address %s: want host:port", quote(l))
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("own address %s: want a port from 1 to 65535", quote(l))
		}
		ip, err := netip.ParseAddr(host)
		switch {
		case host == "" || err == nil && ip.IsUnspecified():
			o.add("localhost", int(n))
			o.add("127.0.0.1", int(n))
			o.add("::1", int(n))
			for _, a := range local {
				o.add(a.WithZone("").String(), int(n))
			}
			continue
		case err == nil && ip.IsLoopback():
			o.add("localhost", int(n))
		case err != nil && !hostName(host):
			return nil, fmt.Errorf("own address %s: want a name or an IP address", quote(l))
		}
		o.add(host, int(n))
	}
	return o, nil
}

func (o own) add(host string, port int) {
	if a, err := join(host, port); err == nil {
		o[a] = true
	}
}

// localAddresses is every address of this machine.
func localAddresses() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list this machine's addresses: %w", err)
	}
	var all []netip.Addr
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				all = append(all, ip.Unmap())
			}
		}
	}
	return all, nil
}
