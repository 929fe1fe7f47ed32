package main

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// preemption lets the notice be given that the server's time is over.
type preemption struct {
	// given has the end of the notice, once it is given.
	given chan time.Time
	// announce gives the notice at its first call, and tells when it ends.
	announce func() time.Time
}

func newPreemption(notice time.Duration) preemption {
	given := make(chan time.Time, 1)
	return preemption{given: given, announce: sync.OnceValue(func() time.Time {
		stopsAt := time.Now().Add(notice)
		given <- stopsAt
		return stopsAt
	})}
}

// ServeHTTP takes the notice from this machine alone, as from an agent of who
// lends it, and not from a web page that is read on it.
func (p preemption) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() || r.Header.Get("Origin") != "" {
		http.Error(w, "a notice is taken from this machine alone", http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, "{\"stops_at\":%q}\n", p.announce().UTC().Format(time.RFC3339))
}
