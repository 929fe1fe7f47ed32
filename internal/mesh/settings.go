package mesh

import (
	"path/filepath"

	"example.org/pilotfish/internal/settings"
)

// SelfSigned selects a certificate that each process makes for itself.
const SelfSigned = "self-signed"

// Settings is the section "mesh" of a configuration file.
type Settings struct {
	// Listen is the address for Envoy's gRPC streams (ext_proc): host:port, or unix: and
	// the path of a socket. Empty disables the port.
	Listen string `yaml:"listen"`
	// TLS is the certificate of that port: "self-signed", which gateways expect of an endpoint picker, or
	// the folder of tls.crt and tls.key, as Kubernetes mounts a secret. Changed files are
	// reloaded. Empty disables TLS.
	TLS string `yaml:"tls"`
}

// Check reports invalid settings to f.
func (s Settings) Check(f *settings.Faults) {
	if s.Listen != "" {
		f.Listen("listen", s.Listen)
	}
	if s.TLS != "" && s.TLS != SelfSigned && !filepath.IsAbs(s.TLS) {
		f.Add("tls", "%q is neither %s nor the absolute path of a folder", s.TLS, SelfSigned)
	}
}

// Files returns the paths of the certificate and its key, if TLS is a folder.
func (s Settings) Files() settings.TLS {
	return settings.TLS{CertFile: filepath.Join(s.TLS, "tls.crt"), KeyFile: filepath.Join(s.TLS, "tls.key")}
}
