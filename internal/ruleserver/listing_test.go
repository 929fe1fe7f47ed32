package ruleserver

import (
	"compress/gzip"
	"fmt"
	"io"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/ruleserver/executor"
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

		do(s, t.Context(), "POST", "/v1/prefetch", `{"project_id": "shop"}`)
		time.Sleep(1500 * time.Millisecond)
		do(s, t.Context(), "POST", "/v1/prefetch", `{"project_id": 12345}`)
		time.Sleep(time.Second)
		body, _, etag := list()
		shop, err := s.feeds.version("shop")
		require.NoError(t, err)
		number, err := s.feeds.version("12345")
		require.NoError(t, err)
		assert.JSONEq(t, fmt.Sprintf(`{"projects":[{"id":"shop","version":%d,"bytes":18,"age_seconds":2.500},`+
			`{"id":12345,"version":%d,"bytes":17,"age_seconds":1.000}]}`, shop, number), body)
		assert.NotEqual(t, empty, etag)
		time.Sleep(2 * listingAge)
		body, _, _ = list()
		assert.Contains(t, body, `"age_seconds":4.500`, "a listing that was made before is not served for long")

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

func TestListingOf100000Projects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no time passes: the ages stay as they are
		s := newServer(t, nil)
		results := make([]executor.Cached, 100_000)
		for i := range results {
			results[i].Key.Project = fmt.Sprint(i)
		}
		s.executor.ReplaceCache(results)

		w := do(s, t.Context(), "GET", "/v1/cache/projects", "", "Accept-Encoding: br;q=1.0, gzip;q=0.8")
		require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
		unzip, err := gzip.NewReader(w.Body)
		require.NoError(t, err)
		text, err := io.ReadAll(unzip)
		require.NoError(t, err)
		var listing struct {
			Projects []struct {
				ID int `json:"id"`
			} `json:"projects"`
		}
		require.NoError(t, json.Unmarshal(text, &listing))
		require.Len(t, listing.Projects, len(results))
		for i, p := range listing.Projects {
			if p.ID != i {
				t.Fatalf("project %d is in place %d", p.ID, i)
			}
		}

		plain := do(s, t.Context(), "GET", "/v1/cache/projects", "", "Accept-Encoding: gzip;q=0")
		assert.Empty(t, plain.Header().Get("Content-Encoding"))
		assert.Equal(t, len(text), plain.Body.Len())
	})
}

func TestAppendProject(t *testing.T) {
	for project, want := range map[string]string{
		"0":                 "0",
		"12345":             "12345",
		"-5":                "-5",
		"007":               `"007"`,
		"-0":                `"-0"`,
		"shop_7":            `"shop_7"`,
		"9007199254740991":  "9007199254740991",
		"90071992547409930": `"90071992547409930"`, // JavaScript would read …920
	} {
		assert.Equal(t, want, string(appendProject(nil, project)))
	}
}

// BenchmarkListing is what one change of the cache costs a server with 100,000
// projects.
func BenchmarkListing(b *testing.B) {
	projects := make([]executor.CachedProject, 100_000)
	for i := range projects {
		projects[i] = executor.CachedProject{Project: fmt.Sprint(i), Version: 1 << 50, Bytes: 50 << 20}
	}
	b.ReportAllocs()
	for b.Loop() {
		compress(appendListing(nil, time.Unix(0, 0), projects))
	}
}
