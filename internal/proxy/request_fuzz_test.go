package proxy

import (
	"bufio"
	"bytes"
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
		u, err := target(r, "127.0.0.1:9001")
		if err != nil {
			require.ErrorIs(t, err, errTarget)
			return
		}
		require.Equal(t, "127.0.0.1:9001", u.Host)
		require.Equal(t, "http", u.Scheme)
		var sent bytes.Buffer
		require.NoError(t, (&http.Request{Method: "GET", URL: u, Host: r.Host}).Write(&sent))
		line, _, _ := strings.Cut(sent.String(), "\r\n")
		got := strings.TrimSuffix(strings.TrimPrefix(line, "GET "), " HTTP/1.1")
		if raw[0] == '/' || raw == "*" {
			require.Equal(t, raw, got)
		} else {
			require.Equal(t, byte('/'), got[0], "an absolute target loses its authority")
			require.True(t, strings.HasSuffix(raw, strings.TrimPrefix(got, "/")))
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
