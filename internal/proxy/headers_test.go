package proxy

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
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
			require.ErrorIs(t, err, errTarget)
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

func TestEveryRefusalHasItsStatus(t *testing.T) {
	for _, tc := range []struct {
		err    error
		status int
		reason string
	}{
		{errFraming, 400, "malformed-body"},
		{errTarget, 400, "bad-target"},
		{errRequest, 400, "bad-request"},
		{errCrossSite, 403, "cross-site"},
		{errForeignHost, 403, "foreign-host"},
		{errMethod, 405, "method-refused"},
		{errSlow, 408, "slow-body"},
		{errUpgrade, 501, "upgrade-refused"},
	} {
		p := record.ProblemOf(fmt.Errorf("more about it: %w", tc.err))
		require.Equal(t, tc.status, p.Status, tc.err)
		require.Equal(t, tc.reason, p.Reason)
		require.Equal(t, intake.Rejected, p.Outcome)
		require.Contains(t, p.Detail, tc.err.Error())
		require.NotEmpty(t, p.Title)
	}
}
