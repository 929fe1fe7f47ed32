package ruleserver

import (
	"fmt"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now()
		files := fstest.MapFS{
			"12345.csv": {Data: []byte("id\n1\n"), ModTime: at},
			"shop.csv":  {Data: []byte("id\n22\n"), ModTime: at},
		}
		s := newServer(t, func(c *Config) { c.Feeds = files })
		list := func(options ...string) (body string, status int, etag string) {
			w := do(s, t.Context(), "GET", "/v1/cache/projects", "", options...)
			return w.Body.String(), w.Code, w.Header().Get("ETag")
		}
		body, _, empty := list()
		assert.JSONEq(t, `{"projects":[]}`, body)

		do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": "shop"}`)
		time.Sleep(1500 * time.Millisecond)
		do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 12345}`)
		time.Sleep(time.Second)
		body, _, etag := list()
		shop, err := s.feeds.version("shop")
		require.NoError(t, err)
		number, err := s.feeds.version("12345")
		require.NoError(t, err)
		assert.JSONEq(t, fmt.Sprintf(`{"projects":[{"id":"shop","version":%d,"bytes":18,"age_seconds":2.500},`+
			`{"id":"12345","version":%d,"bytes":17,"age_seconds":1.000}]}`, shop, number), body)
		assert.NotEqual(t, empty, etag)
		// The same set is no news, however old it gets; another one is.
		time.Sleep(time.Hour)
		body, status, same := list("If-None-Match: " + etag)
		assert.Equal(t, 304, status)
		assert.Empty(t, body)
		assert.Equal(t, etag, same)
		require.NoError(t, s.Warm("12345"))
		_, status, other := list("If-None-Match: " + etag)
		assert.Equal(t, 200, status)
		assert.NotEqual(t, etag, other)

		// A server that comes back has other tags, though it counts the same.
		time.Sleep(time.Second)
		again := newServer(t, func(c *Config) { c.Feeds = files })
		assert.NotEqual(t, empty, do(again, t.Context(), "GET", "/v1/cache/projects", "").Header().Get("ETag"))
	})
}
