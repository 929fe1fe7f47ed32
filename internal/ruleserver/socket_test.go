package ruleserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// largeFeeds has a project whose answer fills every buffer between two sockets,
// with those that begin asks for.
var largeFeeds = fstest.MapFS{"1.csv": {Data: []byte("id\n" + strings.Repeat(strings.Repeat("x", 1023)+"\n", largeFeed>>10))}}

const largeFeed = 12 << 20

// listen serves s on a socket, and reports the records of its jobs.
func listen(t *testing.T, c Config) (url string, ended chan Record) {
	ended = make(chan Record, 10)
	c.OnJob = func(r Record) { ended <- r }
	server := httptest.NewServer(newServer(t, c).Handler())
	t.Cleanup(server.Close)
	return server.URL, ended
}

// submitter reads through a small buffer.
func submitter(t *testing.T) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
		}
		return conn, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// begin posts a job and returns the answer's body once its headers are there.
func begin(t *testing.T, c *http.Client, url, body string) io.ReadCloser {
	response, err := c.Post(url+"/v1/jobs", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	t.Cleanup(func() { response.Body.Close() })
	require.Equal(t, http.StatusOK, response.StatusCode)
	return response.Body
}

// TestStreamTimeout: an answer that is not taken in time is cut, and seen to be.
func TestStreamTimeout(t *testing.T) {
	url, ended := listen(t, Config{Feeds: largeFeeds})
	answer := begin(t, submitter(t), url, `{"project_id": 1, "timeouts": {"stream_seconds": 0.05}}`)
	r := <-ended // nobody reads until the server has given up
	assert.Equal(t, Timeout, r.Outcome)
	n, err := io.Copy(io.Discard, answer)
	require.Error(t, err, "an answer that was cut must not look whole")
	assert.Less(t, n, int64(largeFeed))
}

func TestSubmitterLeavesTheStream(t *testing.T) {
	url, ended := listen(t, Config{Feeds: largeFeeds})
	answer := begin(t, submitter(t), url, `{"project_id": 1}`)
	_, err := io.ReadFull(answer, make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, answer.Close())
	r := <-ended
	assert.Equal(t, Cancelled, r.Outcome)
	assert.Less(t, r.Bytes, int64(largeFeed))
}

// TestStreamIsWhole, and the connection serves another job, whose time is its own.
func TestStreamIsWhole(t *testing.T) {
	url, ended := listen(t, Config{Feeds: largeFeeds})
	c := submitter(t)
	for range 2 {
		answer := begin(t, c, url, `{"project_id": 1, "timeouts": {"stream_seconds": 60}}`)
		n, err := io.Copy(io.Discard, answer)
		require.NoError(t, err)
		r := <-ended
		assert.Equal(t, OK, r.Outcome)
		assert.Equal(t, n, r.Bytes)
	}
}

// TestStandingBody: a body that stands still is given up, and its place with it.
func TestStandingBody(t *testing.T) {
	url, ended := listen(t, Config{BodyIdle: 20 * time.Millisecond})
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	r := <-ended
	assert.Equal(t, Rejected, r.Outcome)
	assert.Equal(t, http.StatusBadRequest, r.Status)
}
