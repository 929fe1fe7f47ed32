package proxy_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/proxy"
	"example.org/pilotfish/pkg/selection"
)

func TestAHintReachesTheRecord(t *testing.T) {
	up := answering(t, "HTTP/1.1 200 OK\r\nX-Load: running=3, stalled=0, cached=1, waited=0.5\r\nContent-Length: 0\r\n\r\n")
	c := startSidecar(t, setup{upstreams: []string{up.address}})
	res, _ := c.post("{}")
	assert.NotEmpty(t, res.Header.Get("X-Load"), "it passes all the same")
	hint := c.seen(1)[0].Attempts[0].Hint
	require.NotNil(t, hint)
	assert.True(t, hint.Cached)
}

// Servers of other kinds tell their load as ORCA has it, some only at the end of a
// response, some only when asked.
func TestLoadReportsOfORCA(t *testing.T) {
	for name, text := range map[string]string{
		"header":  "HTTP/1.1 200 OK\r\nEndpoint-Load-Metrics: TEXT named_metrics.running=3\r\nContent-Length: 0\r\n\r\n",
		"trailer": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Endpoint-Load-Metrics\r\n\r\n0\r\nEndpoint-Load-Metrics: TEXT named_metrics.running=3\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan []string, 1)
			up := scripted(t, func(p *peer) {
				for r := p.request(); r != nil; r = p.request() {
					asked <- r.Header["Endpoint-Load-Metrics-Format"]
					p.say("%s", text)
				}
			})
			c := startSidecar(t, setup{upstreams: []string{up.address}, Config: proxy.Config{AskLoad: "text"}})
			c.post("{}")
			assert.Equal(t, []string{"text"}, <-asked)
			hint := c.seen(1)[0].Attempts[0].Hint
			require.NotNil(t, hint)
			assert.InDelta(t, 3, hint.Running[selection.Low], 0)

			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url("/v1/jobs"), reader("{}"))
			require.NoError(t, err)
			r.Header.Set("Endpoint-Load-Metrics-Format", "json")
			res, err := client(t).Do(r)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			assert.Equal(t, []string{"json"}, <-asked, "the submitter has asked itself")

			c = startSidecar(t, setup{upstreams: []string{up.address}})
			c.post("{}")
			assert.Nil(t, <-asked, "nobody asks unless it is set")
		})
	}
}
