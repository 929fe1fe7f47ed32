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

// Guard refuses requests that submitters never send. Requests of web pages can reach
// a loopback port through a browser on the same machine; they have an Origin or
// Sec-Fetch-Site header. DNS rebinding, by a page whose own name resolves to this
// machine, is detected by the Host header. CONNECT and TRACE are refused, too. Upgrade
// headers are ignored (RFC 9110, 7.8), because some clients send them in each request.
type Guard struct{ hosts []string } // normalised by plainHost

// NewGuard returns a guard that accepts requests for hosts, localhost, loopback
// addresses and the address connected to; "*" accepts all.
func NewGuard(hosts []string) Guard {
	var g Guard
	for _, h := range hosts {
		g.hosts = append(g.hosts, plainHost(h))
	}
	return g
}

// Wrap returns a handler that calls next for accepted requests.
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
	case slices.ContainsFunc(r.Header["Sec-Fetch-Site"], func(site string) bool { return site != "none" && site != "same-origin" }):
		return fmt.Errorf("%w: Sec-Fetch-Site is %q", record.ErrCrossSite, r.Header["Sec-Fetch-Site"])
	case !g.knows(r):
		return fmt.Errorf("%w: %q", record.ErrForeignHost, r.Host)
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		return fmt.Errorf("%w: %s", record.ErrMethod, r.Method)
	}
	return nil
}

// knows reports whether the Host header is accepted. A request without a Host header or over a
// Unix socket is accepted, because it cannot come from a browser.
func (g Guard) knows(r *http.Request) bool {
	name := (&url.URL{Host: r.Host}).Hostname()
	host := plainHost(name)
	switch {
	case name == "", slices.Contains(g.hosts, "*"), slices.Contains(g.hosts, host):
		return true
	case host == "localhost", strings.HasSuffix(host, ".localhost"): // names of this machine alone (RFC 6761, 6.3)
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err == nil && ip.Unmap().IsLoopback() {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	switch {
	case ok && local.Network() == "unix":
		return true
	case err != nil || !ok:
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	return err == nil && at.Addr().Unmap().WithZone("") == ip.Unmap().WithZone("")
}

// plainHost returns a host in lower case, without a trailing dot.
func plainHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }
