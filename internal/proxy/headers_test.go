package proxy

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/record"
)

// Whatever target net/http lets through is put on the request line as it was,
// or refused, and never leads anywhere but to the upstream.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{
		"/", "*", "/a%2Fb//../c;x?y=%zz&a;b", "//evil/x", "//evil/<x>", "/?", "http://evil/x?y", "http://evil", "http://evil?x", "/a://b",
		"http://u:p@evil//x", "/\xff", "/#?#", "https://evil:1/%2e%2e/x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + raw + " HTTP/1.1\r\nHost: localhost\r\n\r\n")))
		if err != nil || r.RequestURI != raw || r.Method != "GET" {
			return // not a request, or one of several
		}
		sent, err := target(r)
		if err != nil {
			require.ErrorIs(t, err, record.ErrTarget)
			return
		}
		require.Equal(t, byte('/'), sent[0])
		require.Equal(t, -1, strings.IndexFunc(sent, func(c rune) bool {
			return c <= ' ' || c >= 0x7f || strings.ContainsRune("\"#<>\\^`{|}", c)
		}), "%q", sent)
		if raw[0] == '/' {
			require.Equal(t, raw, sent)
		} else {
			require.True(t, strings.HasSuffix(raw, strings.TrimPrefix(sent, "/")), "an absolute target loses its authority")
		}
	})
}
