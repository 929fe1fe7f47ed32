package ruleserver

import (
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

// largeFeeds has a project whose answer fills every buffer between two sockets.
var largeFeeds = fstest.MapFS{"1.csv": {Data: []byte("id\n" + strings.Repeat(strings.Repeat("x", 1023)+"\n", 32<<10))}}

// listen serves s on a socket, and reports the records of its jobs.
func listen(t *testing.T, c Config) (url string, ended chan Record) {
	ended = make(chan Record, 10)
	c.OnJob = func(r Record) { ended <- r }
	server := httptest.NewServer(newServer(t, c).Handler())
	t.Cleanup(server.Close)
	return server.URL, ended
}

// begin posts a job and returns once the answer's headers are there.
func begin(t *testing.T, url, body string) *http.Response {
	response, err := http.Post(url+"/v1/jobs", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	t.Cleanup(func() { response.Body.Close() })
	require.Equal(t, http.StatusOK, response.StatusCode)
	return response
}

// TestStreamTimeout: an answer that is not taken in time is cut, and seen to be.
func TestStreamTimeout(t *testing.T) {
	url, ended := listen(t, Config{Feeds: largeFeeds})
	response := begin(t, url, `{"project_id": 1, "timeouts": {"stream_seconds": 0.05}}`)
	r := <-ended // nobody reads until the server has given up
	assert.Equal(t, Timeout, r.Outcome)
	n, err := io.Copy(io.Discard, response.Body)
	assert.Error(t, err, "an answer that was cut must not look whole")
	assert.Less(t, n, int64(32<<20))
}

func TestSubmitterLeavesTheStream(t *testing.T) {
	url, ended := listen(t, Config{Feeds: largeFeeds})
	response := begin(t, url, `{"project_id": 1}`)
	_, err := io.ReadFull(response.Body, make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	r := <-ended
	assert.Equal(t, Cancelled, r.Outcome)
	assert.Less(t, r.Bytes, int64(32<<20))
}

// TestStreamIsWhole, and the connection serves another job, whose time is its own.
func TestStreamIsWhole(t *testing.T) {
	url, ended := listen(t, Config{Feeds: largeFeeds})
	for range 2 {
		response := begin(t, url, `{"project_id": 1, "timeouts": {"stream_seconds": 60}}`)
		n, err := io.Copy(io.Discard, response.Body)
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
