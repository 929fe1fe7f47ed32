package upstreamclient

import (
	"context"
	"crypto/tls"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A response that ends with the TLS connection is complete only after close_notify, because an attacker can cut the
// connection. A response with a Content-Length does not need that.
func TestTLSAnnouncesTheEndOfAResponse(t *testing.T) {
	cfg, dial := identity(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, tc := range []struct {
			response string
			announce bool
			err      error
		}{
			{"HTTP/1.0 200 OK\r\n\r\nok", true, nil},
			{"HTTP/1.0 200 OK\r\n\r\nok", false, io.ErrUnexpectedEOF},
			{"HTTP/1.1 200 OK\r\n\r\nok", false, io.ErrUnexpectedEOF},
			{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", true, io.ErrUnexpectedEOF},
			{ok, false, nil},
		} {
			up := listen(t, func(p *peer) {
				versioned := cfg.Clone()
				versioned.MaxVersion = version
				c := tls.Server(p.Conn, versioned)
				if r, _ := (&peer{Conn: c, in: newReader(c)}).request(); r == nil {
					return
				}
				_, _ = io.WriteString(c, tc.response)
				if tc.announce {
					_ = c.CloseWrite()
				}
			})
			res, _, err := newClient(t, Config{Dial: dial}).Do(context.Background(), job(up, "{}"))
			require.NoError(t, err)
			text, err := res.all()
			assert.Equal(t, "ok", text)
			assert.ErrorIs(t, err, tc.err, "%x, announced %t: %q", version, tc.announce, tc.response)
		}
	}
}
