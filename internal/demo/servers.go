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

// StartServers starts rule processing servers on free loopback ports. They end with the process.
func StartServers() (addresses []string, err error) {
	settings := ruleserver.Defaults()
	settings.TrustCost = true // of the demo's own jobs
	for range servers {
		server, err := ruleserver.New(ruleserver.Config{Settings: settings, Feeds: example.AnyFeeds()})
		if err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		h := &http.Server{Handler: server.Handler(), ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = h.Serve(l) }()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
