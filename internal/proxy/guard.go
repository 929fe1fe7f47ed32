package proxy

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"example.org/pilotfish/internal/record"
)

// Guard refuses what no submitter sends: requests of web pages, which a
// browser on the same machine would carry to a loopback port, and requests for
// a tunnel. Against a page whose own name resolves to this machine, only the
// Host header helps. An offer to upgrade the protocol is ignored (RFC 9110, 7.8): some
// clients offer TLS or HTTP/2 in each request.
type Guard struct{ hosts []string } // as plainHost returns them

// NewGuard returns a guard that lets requests for hosts pass besides
// localhost, loopback addresses and the address connected to; "*" lets all pass.
func NewGuard(hosts []string) Guard {
	var g Guard
	for _, h := range hosts {
		g.hosts = append(g.hosts, plainHost(h))
	}
	return g
}

// Wrap puts the guard before another handler.
func (g Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.check(r); err != nil {
			record.ProblemOf(err).Write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g Guard) check(r *http.Request) error {
	switch {
	case len(r.Header["Origin"]) > 0:
		return fmt.Errorf("%w: the request has an Origin", record.ErrCrossSite)
	case slices.ContainsFunc(r.Header["Sec-Fetch-Site"], elsewhere):
		return fmt.Errorf("%w: Sec-Fetch-Site is %q", record.ErrCrossSite, r.Header["Sec-Fetch-Site"])
	case !g.knows(r):
		return fmt.Errorf("%w: %q", record.ErrForeignHost, r.Host)
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		return fmt.Errorf("%w: %s", record.ErrMethod, r.Method)
	}
	return nil
}

func elsewhere(site string) bool { return site != "none" && site != "same-origin" }

// knows reports whether the Host header may be used here. No browser leaves it out,
// and none connects to a socket in the file system.
func (g Guard) knows(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if ok && local.Network() == "unix" {
		return true
	}
	name := (&url.URL{Host: r.Host}).Hostname()
	host := plainHost(name)
	switch {
	case name == "", slices.Contains(g.hosts, "*"), slices.Contains(g.hosts, host):
		return true
	case host == "localhost", strings.HasSuffix(host, ".localhost"): // names of this machine alone (RFC 6761, 6.3)
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if ip.Unmap().IsLoopback() {
		return true
	}
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	return err == nil && at.Addr().Unmap().WithZone("") == ip.Unmap().WithZone("")
}

// plainHost is a host in lower case, without the dot that ends an absolute name.
func plainHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }
