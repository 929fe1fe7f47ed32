package discovery

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"example.org/pilotfish/internal/settings"
)

// selfAddresses returns the addresses at which the sidecar can be reached. A listen
// address without a host, or with an unspecified one, is reached at every host that
// local returns. A loopback address is also reached as localhost.
func selfAddresses(listen []string, local func() ([]string, error)) (map[string]bool, error) {
	self := map[string]bool{}
	for _, l := range listen {
		all := []string{l}
		host, port, err := net.SplitHostPort(l)
		switch ip, _ := netip.ParseAddr(host); {
		case ip.IsUnspecified(), host == "" && err == nil:
			if all, err = local(); err != nil {
				return nil, err
			}
			for i, h := range all {
				all[i] = net.JoinHostPort(h, port)
			}
		case ip.Zone() != "":
			all[0] = net.JoinHostPort(ip.WithZone("").String(), port)
		case ip.IsLoopback():
			all = append(all, net.JoinHostPort("localhost", port))
		}
		for _, a := range all {
			address, err := settings.Address(a)
			if err != nil {
				return nil, fmt.Errorf("own address %w", err)
			}
			self[address] = true
		}
	}
	return self, nil
}

// Own returns the indices of addresses in list that are the sidecar's own.
func Own(list, listen []string) (own []int) {
	self, _ := selfAddresses(slices.DeleteFunc(listen, func(l string) bool { return strings.HasSuffix(l, ":0") }), localHosts) // an invalid one has its own error
	for i, a := range list {
		if address, wrong := settings.Address(a); wrong == nil && self[address] {
			own = append(own, i)
		}
	}
	return own
}

// localHosts returns the names and addresses of this machine.
func localHosts() ([]string, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list this machine's addresses: %w", err)
	}
	all := []string{"localhost", "127.0.0.1", "::1"}
	for _, a := range list {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, prefix.Addr().String())
		}
	}
	return all, nil
}
