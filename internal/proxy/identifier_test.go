package proxy_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/job"
	"example.org/pilotfish/internal/proxy"
)

// A job has one identifier, on which upstream and record agree: that of the request, or one of pilotfish's own.
// A response has the ID if the upstream sent it or if stream.request_id is set. Error responses of pilotfish always have it.
func TestEveryJobHasAnIdentifier(t *testing.T) {
	var sent, answered string // X-Request-Id
	up := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if sent = r.Header.Get("X-Request-Id"); answered != "" {
			w.Header().Set("X-Request-Id", answered)
		}
	})
	for name, c := range map[string]struct{ upstream, given, answered string }{
		"of the request": {up, "job-7", ""}, "of pilotfish": {up, "", ""}, "two": {up, "job-7", "theirs"}, "of a job that fails": {refusing(t), "", ""},
		"asked for": {up, "", ""}, "asked for, two": {up, "job-7", "theirs"},
	} {
		asked := strings.HasPrefix(name, "asked for")
		side := startSidecar(t, setup{upstreams: []string{c.upstream}, wait: time.Millisecond, Config: proxy.Config{Config: job.Config{RequestID: asked}}})
		r, err := http.NewRequest("POST", side.url("/"), strings.NewReader("{}"))
		require.NoError(t, err)
		if c.given != "" {
			r.Header.Set("X-Request-Id", c.given)
		}
		sent, answered = "", c.answered
		res, err := client(t).Do(r)
		require.NoError(t, err)
		_ = res.Body.Close()
		id := side.seen(1)[0].ID
		if c.given != "" {
			assert.Equal(t, c.given, id, name)
		}
		if c.upstream == up {
			assert.Equal(t, id, sent, name)
		}
		if c.upstream == up && !asked || c.answered != "" {
			id = c.answered
		}
		assert.Equal(t, id, res.Header.Get("X-Request-Id"), name)
	}
}
