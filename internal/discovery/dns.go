package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"example.org/pilotfish/internal/pool"
)

// Defaults of DNSConfig.
const (
	DefaultDNSInterval = 10 * time.Second
	DefaultDNSTimeout  = 5 * time.Second
)

// The kinds of DNS record that can be asked for.
const (
	RecordA    = "A"
	RecordAAAA = "AAAA"
	RecordSRV  = "SRV"
)

// AddressLookup resolves a name to addresses; *net.Resolver does.
type AddressLookup interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// ServiceLookup resolves SRV records; *net.Resolver does.
type ServiceLookup interface {
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// DNSConfig says which name has the upstreams as its records, as that of a
// headless Kubernetes service has.
type DNSConfig struct {
	// Name is asked for; it needs a final dot if the search list must not apply.
	Name string
	// Record is RecordA (the default), RecordAAAA or RecordSRV.
	Record string
	// Port is the upstreams' port; SRV records have their own, and it must be 0.
	Port int
	// Interval is how often the name is resolved; default 10 s, at least 1 s.
	Interval time.Duration
	// Timeout bounds a resolution; default 5 s.
	Timeout time.Duration
	// Addresses and Services resolve; nil is the system's resolver.
	Addresses AddressLookup
	Services  ServiceLookup
}

func (c DNSConfig) withDefaults() (DNSConfig, error) {
	if c.Record == "" {
		c.Record = RecordA
	}
	if c.Interval == 0 {
		c.Interval = DefaultDNSInterval
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultDNSTimeout
	}
	if c.Addresses == nil {
		c.Addresses = net.DefaultResolver
	}
	if c.Services == nil {
		c.Services = net.DefaultResolver
	}
	switch {
	case !hostName(c.Name):
		return c, fmt.Errorf("dns: name %s: want a host name", quote(c.Name))
	case c.Record == RecordSRV && c.Port != 0:
		return c, fmt.Errorf("dns: port %d: SRV records have their own", c.Port)
	case c.Record == RecordSRV:
	case c.Record != RecordA && c.Record != RecordAAAA:
		return c, fmt.Errorf("dns: record %s: want %s, %s or %s", quote(c.Record), RecordA, RecordAAAA, RecordSRV)
	case c.Port < 1 || c.Port > 65535:
		return c, fmt.Errorf("dns: port %d: want 1 to 65535", c.Port)
	}
	if c.Interval < shortest {
		return c, fmt.Errorf("dns: an interval of %s: want at least %s", c.Interval, shortest)
	}
	if c.Timeout < 0 {
		return c, fmt.Errorf("dns: a timeout of %s: want a positive duration", c.Timeout)
	}
	return c, nil
}

// dns is a name whose records are the upstreams. That there is no such name
// is an empty answer, because a headless service without a ready pod has
// none; whatever else goes wrong is no answer.
type dns struct {
	cfg   DNSConfig
	known map[string][]netip.Addr // of the targets of the last SRV answer
}

func newDNS(cfg DNSConfig) (origin, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return origin{}, err
	}
	return origin{
		source: &dns{cfg: cfg},
		name:   fmt.Sprintf("dns %s %s", cfg.Record, cfg.Name),
		pace:   pace{gap: cfg.Interval, retryMax: min(longestRetry, cfg.Interval)},
	}, nil
}

func (d *dns) ask(ctx context.Context, _ time.Duration) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	if d.cfg.Record == RecordSRV {
		return d.askSRV(ctx)
	}
	network := "ip4"
	if d.cfg.Record == RecordAAAA {
		network = "ip6"
	}
	ips, err := d.cfg.Addresses.LookupNetIP(ctx, network, d.cfg.Name)
	if err != nil && !notFound(err) {
		return answer{}, fmt.Errorf("resolve %s: %w", d.cfg.Name, err)
	}
	var a answer
	for _, ip := range ips {
		a.add(ip.String(), d.cfg.Port, 0)
	}
	return a, nil
}

// add takes one more upstream, or the flaw that it is none.
func (a *answer) add(host string, port int, weight float64) {
	address, err := join(host, port)
	if err != nil {
		a.flaw = errors.Join(a.flaw, err)
		return
	}
	a.upstreams = append(a.upstreams, pool.Upstream{Address: address, Weight: weight})
}

// notFound says whether DNS answered that there is nothing.
func notFound(err error) bool {
	var e *net.DNSError
	return errors.As(err, &e) && e.IsNotFound
}
