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
// Host header helps.
type Guard struct{ hosts []string } // lower case

// NewGuard returns a guard that lets requests for hosts pass besides
// localhost, loopback addresses and the address connected to; "*" lets all pass.
func NewGuard(hosts []string) Guard {
	var g Guard
	for _, h := range hosts {
		g.hosts = append(g.hosts, strings.ToLower(h))
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
	case slices.ContainsFunc(r.Header["Upgrade"], notH2C):
		return fmt.Errorf("%w: Upgrade is %q", record.ErrUpgrade, r.Header["Upgrade"])
	}
	return nil
}

func elsewhere(site string) bool { return site != "none" && site != "same-origin" }

// notH2C reports whether something else than an upgrade to HTTP/2 is offered. Java's
// client offers that with every first request; it is passed over in silence, as
// RFC 9110 allows.
func notH2C(upgrade string) bool { return !strings.EqualFold(strings.TrimSpace(upgrade), "h2c") }

// knows reports whether the Host header may be used here. No browser leaves it out,
// and none connects to a socket in the file system.
func (g Guard) knows(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if ok && local.Network() == "unix" {
		return true
	}
	host := strings.ToLower((&url.URL{Host: r.Host}).Hostname())
	if slices.Contains(g.hosts, "*") || host == "" || host == "localhost" || slices.Contains(g.hosts, host) {
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
	return err == nil && at.Addr().Unmap() == ip.Unmap()
}
