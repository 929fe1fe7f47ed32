package mesh

import (
	"strconv"
	"strings"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/settings"
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

// canonical is the form under which discovery knows an address, where it is one.
func canonical(address string) string {
	if known, err := settings.Address(address); err == nil {
		return known
	}
	return strings.ToLower(address)
}
