package upstreamclient

import (
	"context"
	"crypto/tls"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/peer"
)

func TestHeadsAreBounded(t *testing.T) {
	line := "X: " + strings.Repeat("x", 1000) + "\r\n"
	for name, answer := range map[string]string{
		"a head":              "HTTP/1.1 200 OK\r\n" + strings.Repeat(line, 1000) + "\r\n",
		"one line":            "HTTP/1.1 200 " + strings.Repeat("x", 1<<20),
		"an interim head":     "HTTP/1.1 103 Hints\r\n" + strings.Repeat(line, 1000) + "\r\n" + ok,
		"a head without end":  "HTTP/1.1 200 OK\r\n",
		"an answer below 100": "HTTP/1.1 099 No\r\n\r\n",
		"short lines":         "HTTP/1.1 200 OK\r\n" + strings.Repeat("a:\n", 1000) + ok[17:],
	} {
		t.Run(name, func(t *testing.T) {
			up := peer.Listen(t, func(p *peer.Peer) {
				p.Request()
				p.Say("%s", answer)
			})
			c := newClient(t, Config{MaxHead: 64 << 10})
			_, p, err := c.Do(context.Background(), job(up, "{}"))
			require.Error(t, err)
			assert.True(t, p.Answered)
			assert.Zero(t, pooled(c, up))
		})
	}
	up := peer.Listen(t, func(p *peer.Peer) {
		p.Request()
		p.Say("HTTP/1.1 200 OK\r\n%s\r\n", strings.Repeat(line, 60)+"Content-Length: 1048576\r\n")
		p.Say("%s", strings.Repeat("x", 1<<20))
	})
	_, text, _ := do(t, newClient(t, Config{MaxHead: 64 << 10}), job(up, "{}"))
	assert.Len(t, text, 1<<20, "the bound is on the head alone")
}

// A response that ends with the TLS connection is complete only after close_notify, because an attacker can cut the
// connection. A response with a Content-Length does not need that.
func TestTLSAnnouncesTheEndOfAResponse(t *testing.T) {
	cfg, dial := identity(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		server := cfg.Clone()
		server.MaxVersion = version
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
			up := serveRecords(t, server, func(p *peer.Peer, _ *wire) {
				p.Request()
				p.Say("%s", tc.response)
				if tc.announce {
					_ = p.Conn.(*tls.Conn).CloseWrite()
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
