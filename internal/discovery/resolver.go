package discovery

import (
	"context"
	"net"
	"net/netip"
	"strings"

	"example.org/pilotfish/internal/files"
)

// Resolver resolves names; *net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error)
}

// resolvConf is the path of the resolver's configuration, which contains the search list.
const resolvConf = "/etc/resolv.conf"

// maxResolvConf is the size in bytes up to which that file is read.
const maxResolvConf = 64 << 10

// system is the system's resolver with one difference: a name does not exist only if the name does not exist with any suffix
// of the search list. net.Resolver returns NXDOMAIN even if the lookup with a suffix failed for another reason, such as SERVFAIL.
type system struct {
	*net.Resolver
	config string // path of resolv.conf
}

func (s system) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	all, err := s.Resolver.LookupNetIP(ctx, network, host)
	return all, s.confirm(err, host, func(name string) error {
		_, err := s.Resolver.LookupNetIP(ctx, network, name)
		return err
	})
}

func (s system) LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error) {
	target, all, err := s.Resolver.LookupSRV(ctx, service, proto, name)
	return target, all, s.confirm(err, name, func(name string) error {
		_, _, err := s.Resolver.LookupSRV(ctx, service, proto, name)
		return err
	})
}

// confirm repeats a lookup that returned NXDOMAIN with each suffix. It returns the first error other than NXDOMAIN, or err.
func (s system) confirm(err error, name string, lookup func(name string) error) error {
	if !notFound(err) || strings.HasSuffix(name, ".") {
		return err
	}
	for _, suffix := range s.suffixes() {
		if failed := lookup(name + "." + strings.Trim(suffix, ".") + "."); failed != nil && !notFound(failed) {
			return failed
		}
	}
	return err
}

// suffixes returns the search list: the last line of resolv.conf with search or domain.
func (s system) suffixes() (all []string) {
	text, _ := files.Read(s.config, maxResolvConf)
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && (words[0] == "search" || words[0] == "domain") {
			all = words[1:]
		}
	}
	return all
}
