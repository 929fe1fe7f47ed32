package discovery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.org/pilotfish/internal/settings"
)

// Settings configure where upstreams are found. Exactly one kind of source is required.
type Settings struct {
	// Static is a fixed list of addresses: host:port, or unix: and the path of a socket.
	Static []string `yaml:"static"`
	// File is the path of a file that lists the upstreams, one on each line. It is read
	// every two seconds.
	File string `yaml:"file"`
	// DNS is a name that is resolved every five seconds. NAME:PORT uses the address
	// records, IPv6 only if there is no IPv4 address. NAME alone uses the SRV records,
	// which contain ports. A final dot in the name turns the resolver's search list
	// off.
	DNS string `yaml:"dns"`
	// Consul is a service in Consul's catalogue.
	Consul *Consul `yaml:"consul"`
	// Kubernetes is a service of a Kubernetes cluster.
	Kubernetes *Kubernetes `yaml:"kubernetes"`
	// EmptyAfter is how long an empty list is ignored: the source must keep returning it for that
	// long. A list that lacks more than half of the upstreams is ignored for a third of that. 0
	// accepts every list at once.
	EmptyAfter time.Duration `yaml:"empty_after"`
	// Snapshot is a file that stores the last list and the learned durations of jobs. At the next start, the list is
	// used if the source is unreachable or first returns an empty list. Empty means no file.
	Snapshot string `yaml:"snapshot"`
}

// Default returns the default settings, which name no source.
func Default() Settings { return Settings{EmptyAfter: 30 * time.Second} }

// kind is a kind of source.
type kind struct {
	name  string // its key in the settings
	set   bool
	check func(*settings.Faults)
	open  func(*Config) (source, error)
}

// kinds returns all kinds of sources. A new kind has a field above and a row here.
func (s *Settings) kinds() []kind {
	return []kind{
		{"static", len(s.Static) > 0, s.checkStatic, s.openStatic},
		{"file", s.File != "", s.checkFile, s.openFile},
		{"dns", s.DNS != "", s.checkDNS, s.openDNS},
		{"consul", s.Consul != nil, s.Consul.check, s.Consul.open},
		{"kubernetes", s.Kubernetes != nil, s.Kubernetes.check, s.Kubernetes.open},
	}
}

// configured returns the kinds of sources that are set. Valid settings have one.
func (s *Settings) configured() []kind {
	return slices.DeleteFunc(s.kinds(), func(k kind) bool { return !k.set })
}

// Kinds returns the keys of the kinds of sources, for messages.
func Kinds() string {
	var all []string
	for _, k := range new(Settings).kinds() {
		all = append(all, k.name)
	}
	return strings.Join(all, ", ")
}

// Check adds invalid values to f, and warnings about missing files.
func (s Settings) Check(f *settings.Faults) {
	f.NotNegative("empty_after", s.EmptyAfter)
	s.checkSnapshot(f)
	configured := s.configured()
	if len(configured) != 1 {
		f.Add("", "%d sources of upstreams are set: set exactly one of %s", len(configured), Kinds())
		return
	}
	configured[0].check(f.In(configured[0].name))
}

func (s *Settings) checkSnapshot(f *settings.Faults) {
	if s.Snapshot == "" {
		return
	}
	folder := filepath.Dir(s.Snapshot)
	if info, err := os.Stat(s.Snapshot); err == nil && info.IsDir() {
		f.Add("snapshot", "%s is a folder; name a file in it", s.Snapshot)
	} else if info, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		f.Warn("snapshot", "there is no folder %s, so no snapshot can be written", folder)
	}
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
		first, _, more := strings.Cut(a, " ")
		_, bad := settings.Address(first)
		switch {
		case more && bad == nil:
			f.Add(key, "%s is more than an address; discovery.file takes weights and other attributes", settings.Quote(a))
		case err != nil:
			f.Add(key, "%v", err)
		case seen[address]:
			f.Warn(key, "%s is there twice; it counts as one upstream", address)
		}
		seen[address] = true
	}
}
