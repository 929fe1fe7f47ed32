package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// dnsTimeout bounds a resolution, SRV targets included.
const dnsTimeout = 5 * time.Second

// Resolver resolves names; *net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// dns is a name whose records are the upstreams. A name that does not exist is
// an empty reply, because a headless service without a ready pod has none. Any
// other failure is no reply.
type dns struct {
	cfg      DNS
	resolver Resolver
	known    map[string][]netip.Addr // of the targets of the last SRV reply
}

func newDNS(cfg DNS, resolver Resolver) origin {
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	return origin{
		source: &dns{cfg: cfg, resolver: resolver},
		name:   fmt.Sprintf("dns %s %s", cfg.Record, cfg.Name),
		pace:   pace{gap: cfg.Interval, retryMax: min(longestRetry, cfg.Interval)},
	}
}

func (d *dns) ask(ctx context.Context, _ time.Duration) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	if d.cfg.Record == recordSRV {
		return d.askSRV(ctx)
	}
	network := "ip4"
	if d.cfg.Record == recordAAAA {
		network = "ip6"
	}
	ips, err := d.resolver.LookupNetIP(ctx, network, d.cfg.Name)
	if err != nil && !notFound(err) {
		return reply{}, fmt.Errorf("resolve %s: %w", d.cfg.Name, err)
	}
	var r reply
	for _, ip := range ips {
		r.add(ip.String(), d.cfg.Port, 0)
	}
	return r, nil
}

// askSRV resolves the service and then each target, because a job must not
// depend on DNS. Only the targets of the most preferred priority count (RFC
// 2782). One that cannot be resolved keeps the addresses it had, or is a flaw if
// it had none.
func (d *dns) askSRV(ctx context.Context) (reply, error) {
	_, records, err := d.resolver.LookupSRV(ctx, "", "", d.cfg.Name)
	if err != nil && !notFound(err) && len(records) == 0 {
		return reply{}, fmt.Errorf("resolve %s: %w", d.cfg.Name, err)
	}
	var r reply
	if len(records) > 0 && err != nil { // the resolver left malformed records out
		r.flaw = err
	}
	known := make(map[string][]netip.Addr)
	for _, record := range preferredRecords(records) {
		target := strings.TrimSuffix(record.Target, ".")
		ips, ok := known[target]
		if !ok {
			ips, err = d.target(ctx, target)
			if err != nil {
				r.flaw = errors.Join(r.flaw, err)
			}
			known[target] = ips
		}
		for _, ip := range ips {
			r.add(ip.String(), int(record.Port), float64(record.Weight))
		}
	}
	if len(r.upstreams) == 0 && r.flaw != nil {
		return reply{}, fmt.Errorf("resolve %s: %w", d.cfg.Name, r.flaw)
	}
	d.known = known
	return r, nil
}

// target resolves one target of a record. With an error come the addresses that it had before.
func (d *dns) target(ctx context.Context, name string) ([]netip.Addr, error) {
	if !hostName(name) {
		return nil, fmt.Errorf("target %s is not a host name", quote(name))
	}
	ips, err := d.resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return d.known[name], fmt.Errorf("resolve target %s: %w", name, err)
	}
	return oneFamily(ips), nil
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

// oneFamily is the IPv4 addresses if there are any, else all: a target with both
// families is still one upstream.
func oneFamily(ips []netip.Addr) []netip.Addr {
	var four []netip.Addr
	for _, ip := range ips {
		if ip.Unmap().Is4() {
			four = append(four, ip)
		}
	}
	if len(four) > 0 {
		return four
	}
	return ips
}

// notFound reports whether DNS said that there is nothing.
func notFound(err error) bool {
	var e *net.DNSError
	return errors.As(err, &e) && e.IsNotFound
}
