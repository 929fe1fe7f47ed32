package settings

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// HostName reports whether a text is a valid DNS name.
func HostName(text string) bool { return text != "" && len(text) <= 253 && plain(text, "._-") }

// plain reports whether a text has only letters, digits and these characters. Addresses are used in URLs, log lines,
// metric labels, and files in which spaces separate words.
func plain(text, others string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(others, r))
	})
}

// Address checks host:port, or unix: and a path, and returns the canonical form, which identifies an upstream: names in
// lower case, IP addresses and paths in their shortest form.
func Address(address string) (string, error) {
	if path, local := UnixPath(address); local {
		if !SocketPath(path) || !plain(path, "/._@+=-") {
			return "", fmt.Errorf("%s is not unix: followed by the absolute path of a socket, with only letters, digits and /.-_@+=", Quote(address))
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
		return "", 0, fmt.Errorf("%s is not host:port%s", Quote(address), misread(address))
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		hint := misread(address)
		if hint == "" {
			hint = ": the port is not between 1 and 65535"
		}
		return "", 0, fmt.Errorf("%s is not host:port%s", Quote(address), hint)
	}
	return host, int(n), nil
}

// misread returns a hint for a text that is commonly given as host:port, or "".
func misread(address string) string {
	host, _, path := strings.Cut(address, "/")
	switch {
	case path && host != "":
		return "; an address has no path: write " + Cut(host, 80)
	case strings.Contains(address, ","):
		return "; commas do not separate addresses"
	case strings.Count(address, ":") > 1:
		return "; an IPv6 address needs brackets, as in [fd00::3]:9001"
	case HostName(address):
		return "; the port is missing: write " + Cut(address, 80) + ":PORT"
	}
	return ""
}

// JoinAddress is Address for a separate host and port.
func JoinAddress(host string, port int) (string, error) {
	if port < 1 || port > 65535 {
		return "", fmt.Errorf("port %d is not between 1 and 65535", port)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return "", fmt.Errorf("host %s has an IPv6 zone, which is valid only on its own machine", Quote(host))
		}
		host = ip.Unmap().String()
	} else if !HostName(host) {
		return "", fmt.Errorf("host %s is not a name or an IP address", Quote(host))
	}
	return net.JoinHostPort(strings.ToLower(host), strconv.Itoa(port)), nil
}

// Quote prepares a text from outside for a message: quoted, escaped, and truncated.
func Quote(text string) string { return strconv.Quote(Cut(text, 80)) }
