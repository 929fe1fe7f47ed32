package discovery

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.org/pilotfish/internal/settings"
)

// Addresses end up in URLs, log lines and metric labels, and in files where words are separated
// by spaces, so no other character is allowed.
var (
	// hostName reports whether a text can be a DNS name.
	hostName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,253}$`).MatchString
	// plainPath reports whether the path of a socket has no other character.
	plainPath = regexp.MustCompile(`^[a-zA-Z0-9/._@+=-]*$`).MatchString
)

// canonical checks host:port, or unix: and a path, and writes it in the one form under which an
// upstream is known, so that two spellings of one address are the same: names
// in lower case, IP addresses and paths in their shortest form.
func canonical(address string) (string, error) {
	if path, local := settings.UnixPath(address); local {
		if !settings.SocketPath(path) || !plainPath(path) {
			return "", fmt.Errorf("%s is not unix: and the absolute path of a socket, of letters, digits and /.-_@+=", quote(address))
		}
		return "unix:" + filepath.Clean(path), nil
	}
	host, port, err := split(address)
	if err != nil {
		return "", err
	}
	return join(host, port)
}

// split takes host:port apart and checks the port.
func split(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("%s is not host:port", quote(address))
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("%s is not host:port: the port is not between 1 and 65535", quote(address))
	}
	return host, int(n), nil
}

// join is canonical for a host and a port that come apart.
func join(host string, port int) (string, error) {
	if port < 1 || port > 65535 {
		return "", fmt.Errorf("port %d is not between 1 and 65535", port)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return "", fmt.Errorf("host %s has a zone, which only its own machine knows", quote(host))
		}
		host = ip.Unmap().String()
	} else if !hostName(host) {
		return "", fmt.Errorf("host %s is not a name or an IP address", quote(host))
	}
	return net.JoinHostPort(strings.ToLower(host), strconv.Itoa(port)), nil
}

// quote shows foreign text in a message: escaped, and cut when long.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

// selfAddresses are the sidecar's own addresses: those on which it listens. One
// without a host, or with the unspecified one, stands for every host that
// local returns; a loopback address also has the name localhost.
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
			address, err := canonical(a)
			if err != nil {
				return nil, fmt.Errorf("own address %w", err)
			}
			self[address] = true
		}
	}
	return self, nil
}

// Own finds the addresses of list, by number, at which a sidecar itself listens.
func Own(list, listen []string) (own []int) {
	self, _ := selfAddresses(slices.DeleteFunc(listen, func(l string) bool { return strings.HasSuffix(l, ":0") }), localHosts) // where one cannot be used, the check of that says so
	for i, a := range list {
		if address, wrong := canonical(a); wrong == nil && self[address] {
			own = append(own, i)
		}
	}
	return own
}

// localHosts are the names and addresses of this machine.
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
