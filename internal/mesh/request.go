package mesh

import (
	"net/netip"
	"strconv"
	"strings"

	"example.org/pilotfish/internal/intake"
)

// length is the declared length of a request's body, -1 if it is not declared.
func (m *message) length() int64 {
	if m.end {
		return 0
	}
	n, err := strconv.ParseInt(m.header.Get("Content-Length"), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// intakeHead is what the intake reads of the headers.
func (m *message) intakeHead() intake.Head {
	return intake.Head{Method: m.method, Path: m.path, Header: m.header}
}

// canonical is the one text for an address that can be written in several ways: IPv6 in any form, host names in
// any case. Paths of sockets stay as they are.
func canonical(address string) string {
	if a, err := netip.ParseAddrPort(address); err == nil {
		return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).String()
	}
	if strings.HasPrefix(address, "unix:") {
		return address
	}
	return strings.ToLower(address)
}
