// Package demo is what pilotfish demo shows: rule processing servers, a tour of three
// jobs, and a little load after it.
package demo

import (
	"net"
	"net/http"
	"time"

	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/internal/ruleserver/example"
)

// servers is how many rule processing servers the demo starts.
const servers = 4

// StartServers starts rule processing servers on free loopback ports.
func StartServers() (addresses []string, stop func(), err error) {
	var closers []func()
	stop = func() {
		for _, c := range closers {
			c()
		}
	}
	settings := ruleserver.Defaults()
	settings.TrustCost = true // of the demo's own jobs
	for range servers {
		server, err := ruleserver.New(ruleserver.Config{Settings: settings, Feeds: example.AnyFeeds()})
		if err != nil {
			stop()
			return nil, nil, err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			stop()
			return nil, nil, err
		}
		h := &http.Server{Handler: server.Handler(), ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = h.Serve(l) }() // ends with Close
		closers = append(closers, func() { _ = h.Close(); server.Close() })
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, stop, nil
}
