package discovery

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// maxHost bounds a host name, as DNS does.
const maxHost = 253

// canonical checks host:port and writes it in the one form under which
// an upstream is known, so that two spellings of one address collapse: names in lower
// case, IP addresses in their shortest form.
func canonical(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("address %s: want host:port", quote(address))
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", fmt.Errorf("address %s: want a port from 1 to 65535", quote(address))
	}
	return join(host, int(n))
}

// join is canonical for a host and a port that come apart.
func join(host string, port int) (string, error) {
	if port < 1 || port > 65535 {
		return "", fmt.Errorf("port %d: want 1 to 65535", port)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return "", fmt.Errorf("host %s: an address with a zone means nothing elsewhere", quote(host))
		}
		host = ip.Unmap().String()
	} else if !hostName(host) {
		return "", fmt.Errorf("host %s: want a name or an IP address", quote(host))
	}
	return net.JoinHostPort(strings.ToLower(host), strconv.Itoa(port)), nil
}

// hostName says whether host can be a DNS name. Addresses end up in URLs, log
// lines and metric labels, so nothing else is let in.
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
