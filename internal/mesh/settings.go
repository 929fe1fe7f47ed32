package mesh

import "example.org/pilotfish/internal/settings"

// Settings is the section "mesh" of a configuration file.
type Settings struct {
	// Listen is where Envoy asks by gRPC for an upstream: host:port, or unix: and
	// the path of a socket. Without it, nobody is served there.
	Listen string `yaml:"listen"`
}

// Check adds what cannot be used to f.
func (s Settings) Check(f *settings.Faults) {
	if s.Listen != "" {
		f.Listen("listen", s.Listen)
	}
}
