package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"example.org/pilotfish/internal/settings"
)

const (
	dnsInterval = 5 * time.Second
	dnsTimeout  = 5 * time.Second // of a resolution, SRV targets included
)

// Resolver resolves names; *net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// dns is a name whose records are the upstreams. A name that does not exist is
// an empty reply, because a headless service without a ready pod has none. Any
// other failure is no reply.
type dns struct {
	name     string
	port     int // 0 is that of SRV records
	resolver Resolver
}

// splitDNS takes NAME:PORT, or NAME, apart.
func splitDNS(text string) (name string, port int, err error) {
	name = text
	if strings.Contains(text, ":") {
		if name, port, err = split(text); err != nil {
			return "", 0, err
		}
	}
	if !hostName(name) {
		return "", 0, fmt.Errorf("%s is not a host name", quote(name))
	}
	return name, port, nil
}

func (s *Settings) checkDNS(f *settings.Faults) {
	if _, _, err := splitDNS(s.DNS); err != nil {
		f.Add("", "%v", err)
	}
}

func (s *Settings) openDNS(c *Config) (origin, error) {
	name, port, err := splitDNS(s.DNS)
	d := &dns{name: name, port: port, resolver: c.Resolver}
	if d.resolver == nil {
		d.resolver = net.DefaultResolver
	}
	return origin{d.ask, "dns " + s.DNS, dnsInterval}, err
}

func (d *dns) ask(ctx context.Context, _ time.Duration) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	if d.port == 0 {
		return d.askSRV(ctx)
	}
	var r reply
	ips, err := d.addresses(ctx, d.name)
	switch {
	case notFound(err):
		r.none = d.name + " does not exist or has no address (NXDOMAIN)"
	case err != nil:
		return reply{}, fmt.Errorf("%s cannot be resolved: %w", d.name, err)
	}
	for _, ip := range ips {
		r.add(ip.String(), d.port, 0)
	}
	return r, nil
}

// addresses resolves a name. One that has both families is still one upstream, or one
// for each of its IPv4 addresses.
func (d *dns) addresses(ctx context.Context, name string) ([]netip.Addr, error) {
	ips, err := d.resolver.LookupNetIP(ctx, "ip4", name)
	if notFound(err) {
		return d.resolver.LookupNetIP(ctx, "ip6", name)
	}
	return ips, err
}

// askSRV resolves the service and then each target, because a job must not
// depend on DNS. Only the targets of the most preferred priority count (RFC
// 2782). One that does not exist is left out; one that cannot be resolved may exist.
func (d *dns) askSRV(ctx context.Context) (reply, error) {
	_, records, err := d.resolver.LookupSRV(ctx, "", "", d.name)
	var r reply
	switch {
	case len(records) > 0:
		r.leaveOut(err) // malformed records
	case notFound(err):
		r.none = fmt.Sprintf("%s does not exist or has no SRV record (NXDOMAIN); addresses need a port: %s:PORT", d.name, d.name)
	case err != nil:
		return reply{}, fmt.Errorf("%s cannot be resolved: %w", d.name, err)
	}
	for _, record := range preferredRecords(records) {
		target := strings.TrimSuffix(record.Target, ".")
		if !hostName(target) {
			r.leaveOut(fmt.Errorf("target %s is not a host name", quote(target)))
			continue
		}
		ips, err := d.addresses(ctx, target)
		switch {
		case notFound(err):
			r.leaveOut(fmt.Errorf("target %s: %w", target, err))
		case err != nil:
			return reply{}, fmt.Errorf("%s cannot be resolved: target %s: %w", d.name, target, err)
		}
		for _, ip := range ips {
			r.add(ip.String(), int(record.Port), float64(record.Weight))
		}
	}
	if len(r.upstreams) == 0 && r.flaw != nil {
		return reply{}, fmt.Errorf("%s cannot be resolved: %w", d.name, r.flaw)
	}
	return r, nil
}

// preferredRecords is the records with the lowest priority number.
func preferredRecords(records []*net.SRV) []*net.SRV {
	var best []*net.SRV
	for _, r := range records {
		if len(best) > 0 && r.Priority < best[0].Priority {
			best = best[:0]
		}
		if len(best) == 0 || r.Priority == best[0].Priority {
			best = append(best, r)
		}
	}
	return best
}

// notFound reports whether DNS said that there is nothing.
func notFound(err error) bool {
	var e *net.DNSError
	return errors.As(err, &e) && e.IsNotFound
}
