package settings

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// unixPrefix begins the address of a socket in the file system.
	unixPrefix = "unix:"
	// maxUnixPath is the maximum length of a socket's path on Linux, without the final 0 byte.
	maxUnixPath = 107
)

// Listen adds a fault if an address is neither host:port, where port 0 means any free port,
// nor unix: and an absolute path.
func (f *Faults) Listen(key, address string) {
	if path, local := UnixPath(address); local {
		if !SocketPath(path) {
			f.Add(key, "%q is not unix: and an absolute path of at most %d bytes", address, maxUnixPath)
		}
		return
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case err == nil:
	case filepath.IsAbs(address):
		f.Add(key, "%q is not host:port; write unix:%s", address, address)
	case address != "" && strings.Trim(address, "0123456789") == "":
		f.Add(key, "%q is not host:port; write 127.0.0.1:%s", address, address)
	default:
		f.Add(key, "%q is not host:port%s", address, misread(address))
	}
}

// SocketPath reports whether a path is valid for a socket.
func SocketPath(path string) bool { return filepath.IsAbs(path) && len(path) <= maxUnixPath }

// UnixPath returns the path of a Unix socket, if the address is one.
func UnixPath(address string) (path string, local bool) {
	return strings.CutPrefix(address, unixPrefix)
}

// TLS configures connections to a server that uses TLS. Each file is optional. The server's
// certificate is always checked.
type TLS struct {
	// CAFile has the certificates to trust; the system's when empty.
	CAFile string `yaml:"ca_file"`
	// CertFile is the sidecar's own certificate, for a server that wants one.
	CertFile string `yaml:"cert_file"`
	// KeyFile has that certificate's private key.
	KeyFile string `yaml:"key_file"`
	// ServerName is the name in the server's certificate; the host of the server's
	// address when empty.
	ServerName string `yaml:"server_name"`
}
