package discovery

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.org/pilotfish/internal/settings"
)

// Settings say where upstreams come from: exactly one kind of source. There is no default.
type Settings struct {
	// Static is a fixed list of addresses: host:port, or unix: and the path of a socket.
	Static []string `yaml:"static"`
	// File is the path of a file that lists the upstreams, one to a line. It is read
	// every two seconds.
	File string `yaml:"file"`
	// DNS is a name that has the upstreams as its records, asked for every five seconds:
	// NAME:PORT for its addresses, IPv6 only where it has no other; or NAME for its SRV
	// records, which have ports. It needs a final dot if the resolver's search list
	// must not apply.
	DNS string `yaml:"dns"`
	// Consul is a service in Consul's catalogue.
	Consul *Consul `yaml:"consul"`
	// Kubernetes is a service of a Kubernetes cluster.
	Kubernetes *Kubernetes `yaml:"kubernetes"`
	// KeepLast is how long the source must go on naming no upstream before that is
	// believed. For a list without more than half of the upstreams it is a third of
	// that. 0 believes every reply at once.
	KeepLast time.Duration `yaml:"keep_last"`
	// Snapshot is a file that keeps the last list over a restart; "" keeps none.
	Snapshot string `yaml:"snapshot"`
}

// Default is what a file that says nothing means; it names no source.
func Default() Settings { return Settings{KeepLast: 30 * time.Second} }

// kind is a kind of source.
type kind struct {
	name  string // its key in the settings
	given bool
	check func(*settings.Faults)
	open  func(*Config) (origin, error)
}

// kinds are all kinds of sources. A new one has a field above and a row here.
func (s *Settings) kinds() []kind {
	return []kind{
		{"static", len(s.Static) > 0, s.checkStatic, s.openStatic},
		{"file", s.File != "", s.checkFile, s.openFile},
		{"dns", s.DNS != "", s.checkDNS, s.openDNS},
		{"consul", s.Consul != nil, s.Consul.check, s.Consul.open},
		{"kubernetes", s.Kubernetes != nil, s.Kubernetes.check, s.Kubernetes.open},
	}
}

// given are the kinds that the settings have: one, where they are right.
func (s *Settings) given() []kind {
	return slices.DeleteFunc(s.kinds(), func(k kind) bool { return !k.given })
}

// Kinds lists the keys of the kinds of sources, for messages.
func Kinds() string {
	var all []string
	for _, k := range new(Settings).kinds() {
		all = append(all, k.name)
	}
	return strings.Join(all, ", ")
}

// Check adds what cannot be used to f, and warns of files that are not there.
func (s Settings) Check(f *settings.Faults) {
	f.NotNegative("keep_last", s.KeepLast)
	given := s.given()
	if len(given) != 1 {
		f.Add("", "exactly one of %s must say where the upstreams are, not %d of them", Kinds(), len(given))
		return
	}
	given[0].check(f.In(given[0].name))
}

func (s *Settings) checkStatic(f *settings.Faults) {
	if len(s.Static) > maxUpstreams {
		f.Add("", "the list has %d upstreams, at most %d are allowed", len(s.Static), maxUpstreams)
		return
	}
	seen := map[string]bool{}
	for i, a := range s.Static {
		key := fmt.Sprintf("[%d]", i)
		address, err := settings.Address(a)
		switch {
		case err != nil:
			f.Add(key, "%v", err)
		case seen[address]:
			f.Warn(key, "%s is there twice; it counts as one upstream", address)
		}
		seen[address] = true
	}
}
