package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

const (
	dnsInterval = 5 * time.Second
	dnsTimeout  = 5 * time.Second // timeout of a resolution, including SRV targets
)

// dns is a name whose records are the upstreams. A name that does not exist gives
// an empty list, because a headless service without a ready pod has no records. Any
// other failure is an error.
type dns struct {
	name     string
	port     int // 0 means that SRV records contain the ports
	resolver Resolver
}

// splitDNS splits NAME:PORT or NAME.
func splitDNS(text string) (name string, port int, err error) {
	name = text
	if strings.Contains(text, ":") {
		if name, port, err = settings.SplitAddress(text); err != nil {
			return "", 0, err
		}
	}
	if !settings.HostName(name) {
		return "", 0, fmt.Errorf("%s is not a host name", settings.Quote(name))
	}
	return name, port, nil
}

func (s *Settings) checkDNS(f *settings.Faults) {
	if _, _, err := splitDNS(s.DNS); err != nil {
		f.Add("", "%v", err)
	}
}

func (s *Settings) openDNS(c *Config) (source, error) {
	name, port, err := splitDNS(s.DNS)
	d := &dns{name: name, port: port, resolver: cmp.Or[Resolver](c.Resolver, system{&net.Resolver{PreferGo: true, StrictErrors: true}, resolvConf})}
	return source{d.query, "dns " + s.DNS, dnsInterval}, err
}

func (d *dns) query(ctx context.Context, _ time.Duration) (r reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	if d.port == 0 {
		err = d.services(ctx, &r)
	} else if err = d.addresses(ctx, &r, d.name, d.port, 0); notFound(err) {
		r.emptyReason, err = d.name+" does not exist or has no address (NXDOMAIN)", nil
	}
	if err != nil {
		return reply{}, fmt.Errorf("%s cannot be resolved: %w", d.name, err)
	}
	return r, nil
}

// addresses adds the addresses of a name to r: its IPv4 addresses, or its IPv6 addresses if it
// has no other. So a host with both is not listed twice.
func (d *dns) addresses(ctx context.Context, r *reply, name string, port int, weight float64) error {
	ips, err := d.resolver.LookupNetIP(ctx, "ip4", name)
	if notFound(err) {
		ips, err = d.resolver.LookupNetIP(ctx, "ip6", name)
	}
	for _, ip := range ips {
		address, invalid := settings.JoinAddress(ip.String(), port)
		r.add(pool.Upstream{Address: address, Weight: weight}, invalid)
	}
	return err
}

// services resolves the SRV records and then each target, because a job must not
// depend on DNS. Only targets of the lowest priority value are used (RFC 2782). A
// target that does not exist is skipped. Any other failure is an error: the target may exist.
func (d *dns) services(ctx context.Context, r *reply) error {
	_, records, err := d.resolver.LookupSRV(ctx, "", "", d.name)
	switch {
	case len(records) > 0:
		r.skip(err) // malformed records
	case notFound(err):
		r.emptyReason = fmt.Sprintf("%s does not exist or has no SRV record (NXDOMAIN); addresses need a port: %s:PORT", d.name, d.name)
	case err != nil:
		return err
	}
	for _, record := range records {
		if record.Priority > records[0].Priority { // the resolver sorts by priority
			continue
		}
		target := strings.TrimSuffix(record.Target, ".")
		if target == "" {
			r.emptyReason = d.name + ` has the SRV target ".": the service is not available (RFC 2782)`
			continue
		}
		if !settings.HostName(target) {
			r.skip(fmt.Errorf("target %s is not a host name", settings.Quote(target)))
			continue
		}
		if err := d.addresses(ctx, r, target, int(record.Port), float64(record.Weight)); err != nil {
			err = fmt.Errorf("target %s: %w", target, err)
			if !notFound(err) {
				return err
			}
			r.skip(err)
		}
	}
	if len(r.upstreams) == 0 {
		return r.skipReason
	}
	return nil
}

// notFound reports whether the name or record does not exist.
func notFound(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound
}
