package discovery

import (
	"fmt"
	"strings"
	"time"

	"example.org/pilotfish/internal/settings"
)

// Settings say where upstreams come from: exactly one of Static, File, DNS, Consul
// and Kubernetes. There is no default.
type Settings struct {
	// Static is a fixed list of addresses, host:port.
	Static []string `yaml:"static"`
	// File is a file that lists the upstreams, and is read again and again.
	File *File `yaml:"file"`
	// DNS is a name that has the upstreams as its records.
	DNS *DNS `yaml:"dns"`
	// Consul is a service in Consul's catalogue.
	Consul *Consul `yaml:"consul"`
	// Kubernetes is a service of a Kubernetes cluster.
	Kubernetes *Kubernetes `yaml:"kubernetes"`
}

// File is a file that lists the upstreams: one to a line, or as a JSON list.
type File struct {
	// Path is where the file is.
	Path string `yaml:"path"`
	// Interval is the time from one reading to the next.
	Interval time.Duration `yaml:"interval"`
}

// DNS is a name that has the upstreams as its records, such as the name of a
// headless Kubernetes service.
type DNS struct {
	// Name is the name to resolve. It needs a final dot if the resolver's search
	// list must not apply.
	Name string `yaml:"name"`
	// Record is the kind of record: A, AAAA or SRV.
	Record string `yaml:"record"`
	// Port is the upstreams' port. SRV records have their own ports, and it must
	// be left out.
	Port int `yaml:"port"`
	// Interval is the time from one resolution to the next.
	Interval time.Duration `yaml:"interval"`
}

// Consul is a service whose passing instances are the upstreams. What is empty
// comes from Consul's own CONSUL_* environment variables where they are set.
type Consul struct {
	// Address is the agent's: host:port, or a URL with http, https or unix.
	// Empty means 127.0.0.1:8500.
	Address string `yaml:"address"`
	// Service is the name of the service.
	Service string `yaml:"service"`
	// Tag, if not empty, must be among an instance's tags.
	Tag string `yaml:"tag"`
	// Datacenter is where the service is; the agent's own when empty.
	Datacenter string `yaml:"datacenter"`
	// Namespace is the service's; the agent's own when empty.
	Namespace string `yaml:"namespace"`
	// TokenFile holds the ACL token. It is read before every query.
	TokenFile string `yaml:"token_file"`
	// TLS is how to reach the agent by https.
	TLS settings.TLS `yaml:"tls"`
	// Stale lets any Consul server reply, not only the leader.
	Stale bool `yaml:"stale"`
	// Wait is how long a query waits for a change.
	Wait time.Duration `yaml:"wait"`
	// KeepLast is how long Consul must go on naming no upstream before that is
	// believed. For a list without more than half of the upstreams it is a third
	// of that. 0 believes every reply at once.
	KeepLast time.Duration `yaml:"keep_last"`
	// Snapshot is a file that keeps the last list over a restart; "" keeps none.
	Snapshot string `yaml:"snapshot"`
}

// Kubernetes is a service whose EndpointSlices name the upstreams. A pod that serves
// is one; one that serves and terminates is draining.
type Kubernetes struct {
	// Service is the name of the service.
	Service string `yaml:"service"`
	// Namespace is the service's; the pod's own, or that of the kubeconfig, when empty.
	Namespace string `yaml:"namespace"`
	// Port is the name of the service's port; it may be empty where there is one port only.
	Port string `yaml:"port"`
	// Family is the address that a pod with two of them is reached at: IPv4 or IPv6. A
	// pod that has only the other is reached at that.
	Family string `yaml:"family"`
	// Kubeconfig is a file that says how to reach the API server. Empty is for a pod of
	// the cluster, whose service account says so.
	Kubeconfig string `yaml:"kubeconfig"`
	// Wait is how long a watch waits for a change.
	Wait time.Duration `yaml:"wait"`
	// KeepLast is how long the cluster must go on naming no upstream before that is
	// believed. For a list without more than half of the upstreams it is a third of that. 0
	// believes every reply at once.
	KeepLast time.Duration `yaml:"keep_last"`
	// Snapshot is a file that keeps the last list over a restart; "" keeps none.
	Snapshot string `yaml:"snapshot"`
}

// The kinds of DNS record.
const (
	recordA    = "A"
	recordAAAA = "AAAA"
	recordSRV  = "SRV"
)

// The families of addresses.
const (
	familyIPv4 = "IPv4"
	familyIPv6 = "IPv6"
)

const (
	// maxKubernetesWait bounds a watch, so that a connection that died without a word is found out.
	maxKubernetesWait = 10 * time.Minute
	// maxConsulWait is the longest time that an agent lets a query wait.
	maxConsulWait = 10 * time.Minute
	// defaultKeepLast applies to every source; only those of Consul and Kubernetes can be set.
	defaultKeepLast = 30 * time.Second
)

// SetDefaults makes the section one that says nothing.
func (s *File) SetDefaults() { *s = File{Interval: 2 * time.Second} }

// SetDefaults makes the section one that says nothing.
func (s *DNS) SetDefaults() { *s = DNS{Record: recordA, Interval: 10 * time.Second} }

// SetDefaults makes the section one that says nothing.
func (s *Consul) SetDefaults() { *s = Consul{Wait: time.Minute, KeepLast: defaultKeepLast} }

// SetDefaults makes the section one that says nothing.
func (s *Kubernetes) SetDefaults() {
	*s = Kubernetes{Family: familyIPv4, Wait: 5 * time.Minute, KeepLast: defaultKeepLast}
}

// Check adds what cannot be used to f.
func (s Settings) Check(f *settings.Faults) {
	sources := 0
	for _, given := range []bool{len(s.Static) > 0, s.File != nil, s.DNS != nil, s.Consul != nil, s.Kubernetes != nil} {
		if given {
			sources++
		}
	}
	switch {
	case sources != 1:
		f.Add("", "exactly one of static, file, dns, consul and kubernetes must say where the upstreams are, not %d of them", sources)
	case s.File != nil:
		s.File.check(f.In("file"))
	case s.DNS != nil:
		s.DNS.check(f.In("dns"))
	case s.Consul != nil:
		s.Consul.check(f.In("consul"))
	case s.Kubernetes != nil:
		s.Kubernetes.check(f.In("kubernetes"))
	default:
		s.checkStatic(f.In("static"))
	}
}

func (s Settings) checkStatic(f *settings.Faults) {
	if len(s.Static) > maxUpstreams {
		f.Add("", "the list has %d upstreams, at most %d are allowed", len(s.Static), maxUpstreams)
		return
	}
	seen := map[string]bool{}
	for i, a := range s.Static {
		key := fmt.Sprintf("[%d]", i)
		address, err := canonical(a)
		switch {
		case err != nil:
			f.Add(key, "%v", err)
		case seen[address]:
			f.Warn(key, "%s is there twice; it counts as one upstream", address)
		}
		seen[address] = true
	}
}

func (s *File) check(f *settings.Faults) {
	if s.Path == "" {
		f.Add("path", "a path is required")
	}
	checkInterval(f, s.Interval)
}

func (s *DNS) check(f *settings.Faults) {
	switch {
	case s.Name == "":
		f.Add("name", "a name is required")
	case !hostName(s.Name):
		f.Add("name", "%s is not a host name", quote(s.Name))
	}
	f.OneOf("record", s.Record, []string{recordA, recordAAAA, recordSRV})
	switch {
	case s.Record != recordSRV && s.Port == 0:
		f.Add("port", "a port is required, except for SRV records")
	case s.Record != recordSRV:
		f.Within("port", s.Port, 1, 65535)
	case s.Port != 0:
		f.Add("port", "%d must be left out: SRV records have their own ports", s.Port)
	}
	checkInterval(f, s.Interval)
}

func checkInterval(f *settings.Faults, d time.Duration) {
	if d < shortest {
		f.Add("interval", "%v is less than %v", d, shortest)
	}
}

func (s *Consul) check(f *settings.Faults) {
	switch {
	case s.Service == "":
		f.Add("service", "a service is required")
	case strings.ContainsAny(s.Service, "/?#"):
		f.Add("service", "%s must not contain / ? or #", quote(s.Service))
	}
	scheme, _, hasScheme := strings.Cut(s.Address, "://")
	switch {
	case !hasScheme || scheme == "https":
	case scheme != "http" && scheme != "unix":
		f.Add("address", "%s must begin with http, https or unix", quote(s.Address))
	case s.TLS != settings.TLS{}:
		f.Add("address", "%s must begin with https where tls is set", quote(s.Address))
	}
	s.TLS.Check(f.In("tls"))
	if s.Wait < time.Second || s.Wait > maxConsulWait {
		f.Add("wait", "%v is not between %v and %v", s.Wait, time.Second, maxConsulWait)
	}
	f.NotNegative("keep_last", s.KeepLast)
}

func (s *Kubernetes) check(f *settings.Faults) {
	for _, name := range []struct{ key, text string }{{"service", s.Service}, {"namespace", s.Namespace}, {"port", s.Port}} {
		switch {
		case name.text == "" && name.key == "service":
			f.Add("service", "a service is required")
		case name.text != "" && !label(name.text):
			f.Add(name.key, "%s is not a name of Kubernetes: lower case letters, digits and hyphens, at most 63", quote(name.text))
		}
	}
	f.OneOf("family", s.Family, []string{familyIPv4, familyIPv6})
	if s.Wait < time.Second || s.Wait > maxKubernetesWait {
		f.Add("wait", "%v is not between %v and %v", s.Wait, time.Second, maxKubernetesWait)
	}
	f.NotNegative("keep_last", s.KeepLast)
}

// label reports whether a name may be that of a service, a namespace or a port.
func label(name string) bool {
	return len(name) <= 63 && !strings.HasPrefix(name, "-") && !strings.HasSuffix(name, "-") &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
