package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// askSRV resolves the service and then each target, because a job must not depend
// on DNS. Only the targets of the most preferred priority count (RFC 2782). One that
// cannot be resolved keeps the addresses it had, or is a flaw if it had none.
func (d *dns) askSRV(ctx context.Context) (answer, error) {
	_, records, err := d.cfg.Services.LookupSRV(ctx, "", "", d.cfg.Name)
	if err != nil && !notFound(err) && len(records) == 0 {
		return answer{}, fmt.Errorf("resolve %s: %w", d.cfg.Name, err)
	}
	var a answer
	if len(records) > 0 && err != nil { // the resolver left malformed records out
		a.flaw = err
	}
	known := make(map[string][]netip.Addr)
	for _, r := range preferredRecords(records) {
		target := strings.TrimSuffix(r.Target, ".")
		ips, ok := known[target]
		if !ok {
			ips, err = d.target(ctx, target)
			if err != nil {
				a.flaw = errors.Join(a.flaw, err)
			}
			known[target] = ips
		}
		for _, ip := range ips {
			a.add(ip.String(), int(r.Port), float64(r.Weight))
		}
	}
	if len(a.upstreams) == 0 && a.flaw != nil {
		return answer{}, fmt.Errorf("resolve %s: %w", d.cfg.Name, a.flaw)
	}
	d.known = known
	return a, nil
}

// target resolves one target of a record. With an error come the addresses that it had before.
func (d *dns) target(ctx context.Context, name string) ([]netip.Addr, error) {
	if !hostName(name) {
		return nil, fmt.Errorf("target %s: want a host name", quote(name))
	}
	ips, err := d.cfg.Addresses.LookupNetIP(ctx, "ip", name)
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
