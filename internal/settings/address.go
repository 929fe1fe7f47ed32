package settings

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// HostName reports whether a text can be a DNS name.
func HostName(text string) bool { return text != "" && len(text) <= 253 && plain(text, "._-") }

// plain reports whether a text has letters, digits and these characters only. Addresses end up in URLs, log lines and
// metric labels, and in files where words are separated by spaces.
func plain(text, others string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(others, r))
	})
}

// Address checks host:port, or unix: and a path, and returns the one form under which an upstream is known: names in
// lower case, IP addresses and paths in their shortest form. Two addresses are the same if their forms are equal.
func Address(address string) (string, error) {
	if path, local := UnixPath(address); local {
		if !SocketPath(path) || !plain(path, "/._@+=-") {
			return "", fmt.Errorf("%s is not unix: and the absolute path of a socket, of letters, digits and /.-_@+=", Quote(address))
		}
		return "unix:" + filepath.Clean(path), nil
	}
	if scheme, rest, is := strings.Cut(address, "://"); is {
		rest, _, _ = strings.Cut(rest, "/")
		if scheme == "https" {
			rest += ", and configure upstream_tls"
		}
		return "", fmt.Errorf("%s is a URL; write %s", Quote(address), Cut(rest, 80))
	}
	host, port, err := SplitAddress(address)
	if err != nil {
		return "", err
	}
	return JoinAddress(host, port)
}

// SplitAddress splits host:port and checks the port.
func SplitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("%s is not host:port", Quote(address))
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("%s is not host:port: the port is not between 1 and 65535", Quote(address))
	}
	return host, int(n), nil
}

// JoinAddress is Address for a separate host and port.
func JoinAddress(host string, port int) (string, error) {
	if port < 1 || port > 65535 {
		return "", fmt.Errorf("port %d is not between 1 and 65535", port)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return "", fmt.Errorf("host %s has a zone, which only its own machine knows", Quote(host))
		}
		host = ip.Unmap().String()
	} else if !HostName(host) {
		return "", fmt.Errorf("host %s is not a name or an IP address", Quote(host))
	}
	return net.JoinHostPort(strings.ToLower(host), strconv.Itoa(port)), nil
}

// Quote is somebody else's text in a message: escaped, and cut when long.
func Quote(text string) string { return strconv.Quote(Cut(text, 80)) }
