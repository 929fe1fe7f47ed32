package discovery

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"example.org/pilotfish/internal/settings"
)

// maxHost bounds a host name, as DNS does.
const maxHost = 253

// pathMarks may be in the path of a socket besides letters and digits: addresses end up in log
// lines and metric labels, and in files where words are separated by spaces.
const pathMarks = "/.-_@+="

// canonical checks host:port, or unix: and a path, and writes it in the one form under which an
// upstream is known, so that two spellings of one address are the same: names
// in lower case, IP addresses and paths in their shortest form.
func canonical(address string) (string, error) {
	if path, local := settings.UnixPath(address); local {
		if !settings.SocketPath(path) || strings.ContainsFunc(path, func(c rune) bool { return !strings.ContainsRune(pathMarks, c) && !hostName(string(c)) }) {
			return "", fmt.Errorf("%s is not unix: and the absolute path of a socket, of letters, digits and %s", quote(address), pathMarks)
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

// hostName reports whether host can be a DNS name. Addresses end up in URLs, log
// lines and metric labels, so no other character is allowed.
func hostName(host string) bool {
	if host == "" || len(host) > maxHost {
		return false
	}
	for _, c := range []byte(host) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_':
		default:
			return false
		}
	}
	return true
}

// quote shows foreign text in a message: escaped, and cut when long.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

// selfAddresses are the sidecar's own addresses.
type selfAddresses map[string]bool

// newSelfAddresses spells out the addresses on which the sidecar listens. One
// without a host, or with the unspecified one, stands for every address that
// local returns; a loopback address also has the name localhost.
func newSelfAddresses(listen []string, local func() ([]netip.Addr, error)) (selfAddresses, error) {
	self := selfAddresses{}
	for _, l := range listen {
		address, err := canonical(l)
		host, port, wrong := split(l)
		ip, _ := netip.ParseAddr(host)
		switch {
		case wrong == nil && (host == "" || ip.IsUnspecified()):
			all, err := local()
			if err != nil {
				return nil, err
			}
			self.add("localhost", port)
			for _, a := range append(all, netip.IPv6Loopback(), netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
				self.add(a.WithZone("").String(), port)
			}
			continue
		case err != nil && ip.Zone() == "":
			return nil, fmt.Errorf("own address %w", err)
		case ip.IsLoopback():
			self.add("localhost", port)
		}
		self[address] = true
	}
	return self, nil
}

// Own finds the addresses of list, by number, at which a sidecar itself listens.
func Own(list, listen []string) (own []int, err error) {
	self, err := newSelfAddresses(slices.DeleteFunc(listen, func(l string) bool { return strings.HasSuffix(l, ":0") }), localAddresses)
	for i, a := range list {
		if address, wrong := canonical(a); wrong == nil && self[address] {
			own = append(own, i)
		}
	}
	return own, err
}

func (s selfAddresses) add(host string, port int) {
	if a, err := join(host, port); err == nil {
		s[a] = true
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
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, prefix.Addr().Unmap())
		}
	}
	return all, nil
}
