package submitterserver

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

// answer reads a response with a Content-Length.
func answer(t testing.TB, in *bufio.Reader) string {
	t.Helper()
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return fmt.Sprint(res.StatusCode, " ", string(body))
}

func say(w http.ResponseWriter, text string) {
	w.Header()["Content-Type"] = nil
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	_, _ = io.WriteString(w, text)
}

// net/http's server gets only HTTP/2.
func TestRequestsOfAllKindsAreServedHere(t *testing.T) {
	s := serving(t, http.HandlerFunc(ok), nil)
	for _, text := range []string{
		get,
		"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nConnection: Keep-Alive\r\n\r\na",
		"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: other\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nHTTP2-Settings: x\r\n\r\n",
		"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n",
		"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 8<<10) + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\n" + strings.Repeat("X: y\r\n", 1000) + "\r\n",
	} {
		c := dial(t, s.address)
		_, err := io.WriteString(c, get+text)
		require.NoError(t, err)
		in := bufio.NewReader(c)
		assert.Equal(t, "200 ok", answer(t, in))
		assert.Equal(t, "200 ok", answer(t, in), "%.60q", text)
		assert.Empty(t, s.behind, "%.60q", text)
		_ = c.Close()
	}
}

// A head that is too long, or does not arrive in time, is refused.
func TestLongHeads(t *testing.T) {
	s := serving(t, http.HandlerFunc(ok), nil)
	start := "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
	fields := strings.Repeat("X: y\r\n", 4000)
	c := dial(t, s.address)
	_, err := io.WriteString(c, start+fields)
	require.NoError(t, err)
	inner := s.one(t)
	require.Eventually(t, func() bool { return inner.locked(func() bool { return inner.state == starting }) }, patience, time.Millisecond)
	assert.Empty(t, s.behind)
	_, err = io.WriteString(c, "\r\nab"+get)
	require.NoError(t, err)
	in := bufio.NewReader(c)
	assert.Equal(t, "200 ok", answer(t, in))
	assert.Equal(t, "200 ok", answer(t, in))

	c = dial(t, s.address)
	_, err = io.WriteString(c, start+fields+fields)
	require.NoError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, res.StatusCode)

	c = dial(t, s.address)
	_, err = io.WriteString(c, start+fields)
	require.NoError(t, err)
	var slow *conn
	require.Eventually(t, func() bool {
		for _, one := range s.all() {
			if one.locked(func() bool { return one.state == starting }) {
				slow = one
			}
		}
		return slow != nil
	}, patience, time.Millisecond)
	slow.locked(func() bool { slow.arm(time.Unix(1, 0)); return true }) // its time is over
	ends(t, c)
	assert.Empty(t, s.behind)
}

// A head that arrives in pieces is served here, too.
func TestAHeadInPieces(t *testing.T) {
	s := serving(t, http.HandlerFunc(ok), nil)
	c := dial(t, s.address)
	_, err := io.WriteString(c, get[:20])
	require.NoError(t, err)
	inner := s.one(t)
	waits := func() bool { return !inner.armed.IsZero() && time.Until(inner.armed) <= headTimeout }
	require.Eventually(t, func() bool { return inner.locked(waits) }, patience, time.Millisecond)
	_, err = io.WriteString(c, get[20:])
	require.NoError(t, err)
	assert.Equal(t, "200 ok", answer(t, bufio.NewReader(c)))
	assert.Empty(t, s.behind)
}
