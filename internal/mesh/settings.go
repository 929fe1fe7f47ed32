package mesh

import (
	"path/filepath"

	"example.org/pilotfish/internal/settings"
)

// SelfSigned is the text for a certificate that a process makes for itself.
const SelfSigned = "self-signed"

// Settings is the section "mesh" of a configuration file.
type Settings struct {
	// Listen is where Envoy asks by gRPC for an upstream: host:port, or unix: and
	// the path of a socket. Without it, nobody is served there.
	Listen string `yaml:"listen"`
	// TLS is what certificate that port shows: "self-signed", which gateways expect of an endpoint picker, or
	// the folder of tls.crt and tls.key, as Kubernetes mounts a secret. The files are read again when
	// they change. Empty serves without TLS.
	TLS string `yaml:"tls"`
}

// Check adds what cannot be used to f.
func (s Settings) Check(f *settings.Faults) {
	if s.Listen != "" {
		f.Listen("listen", s.Listen)
	}
	if s.TLS != "" && s.TLS != SelfSigned && !filepath.IsAbs(s.TLS) {
		f.Add("tls", "%q is neither %s nor the absolute path of a folder", s.TLS, SelfSigned)
	}
}

// Files are the certificate and its key, where a folder has them.
func (s Settings) Files() settings.TLS {
	return settings.TLS{CertFile: filepath.Join(s.TLS, "tls.crt"), KeyFile: filepath.Join(s.TLS, "tls.key")}
}
