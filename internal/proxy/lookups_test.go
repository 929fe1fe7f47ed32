package proxy_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/proxy"
)

// Only a connection to a name shows that the resolver works. One to an IP address or a Unix socket needs no look-up.
func TestWhatShowsThatTheResolverWorks(t *testing.T) {
	for address, works := range map[string]bool{
		"name.test:1": true, "localhost:1": true, "10.0.0.1:1": false, "[fe80::1%eth0]:1": false, "unix:/run/jobs": false,
	} {
		l := new(proxy.Lookups)
		dial := func(address, name string) error {
			var err error
			if name != "" {
				err = &net.DNSError{Err: "i/o timeout", Name: name}
			}
			_, got := l.Over(func(context.Context, string, string) (net.Conn, error) { return nil, err })(t.Context(), "tcp", address)
			require.Equal(t, err, got)
			return err
		}
		dial("first.test:1", "first.test")
		dial(address, "")
		assert.Equal(t, !works, l.IsShortage(dial("second.test:1", "second.test")), address)
	}
}
