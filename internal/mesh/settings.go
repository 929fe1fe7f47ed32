package mesh

import (
	"net"
	"path/filepath"
	"strings"

	"example.org/pilotfish/internal/settings"
)

// Settings is the section "mesh" of a configuration file.
type Settings struct {
	// Listen is where Envoy asks by gRPC for an upstream: host:port, or unix: and
	// the path of a socket. Without it, nobody is served there.
	Listen string `yaml:"listen"`
}

// unixPrefix begins the address of a socket in the file system.
const unixPrefix = "unix:"

// Check adds what cannot be used to f.
func (s Settings) Check(f *settings.Faults) {
	path, local := strings.CutPrefix(s.Listen, unixPrefix)
	switch {
	case s.Listen == "":
	case !local:
		f.Listen("listen", s.Listen)
	case !filepath.IsAbs(path) || len(path) > maxUnixPath:
		f.Add("listen", "%q is not unix: and an absolute path of at most %d bytes", s.Listen, maxUnixPath)
	}
}

// maxUnixPath is what fits into a socket's address on Linux, with its final 0.
const maxUnixPath = 107

// Address is where to listen, as package net wants it.
func (s Settings) Address() net.Addr {
	if path, local := strings.CutPrefix(s.Listen, unixPrefix); local {
		return &net.UnixAddr{Net: "unix", Name: path}
	}
	return tcpAddress(s.Listen)
}

// tcpAddress is host:port as it was written.
type tcpAddress string

func (tcpAddress) Network() string  { return "tcp" }
func (a tcpAddress) String() string { return string(a) }
