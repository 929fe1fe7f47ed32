package proxy_test

import (
	"cmp"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A job has one identifier, which submitter, upstream and record agree on: that of
// the request, or one of pilotfish's own.
func TestEveryJobHasAnIdentifier(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	var sent, answered string // X-Request-Id
	up := serving(t, func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("X-Request-Id")
		if answered != "" {
			w.Header().Set("X-Request-Id", answered)
		}
	})
	for name, c := range map[string]struct{ given, traceparent, answered, id, told string }{
		"of the request":           {given: "job-7", id: "job-7", told: "job-7"},
		"of the trace":             {traceparent: "00-" + trace + "-00f067aa0ba902b7-01", id: trace, told: trace},
		"of the upstream's making": {given: "job-7", answered: "theirs", id: "job-7", told: "theirs"},
		"of pilotfish":             {},
		"one that cannot be used":  {given: strings.Repeat("x", 200)},
	} {
		t.Run(name, func(t *testing.T) {
			side := startSidecar(t, setup{upstreams: []string{up}})
			r, err := http.NewRequest("POST", side.url("/"), strings.NewReader("{}"))
			require.NoError(t, err)
			for key, value := range map[string]string{"X-Request-Id": c.given, "Traceparent": c.traceparent} {
				if value != "" {
					r.Header.Set(key, value)
				}
			}
			answered = c.answered
			res, err := client(t).Do(r)
			require.NoError(t, err)
			_ = res.Body.Close()
			id, told := side.seen(1)[0].ID, res.Header.Get("X-Request-Id")
			if c.id == "" {
				assert.Regexp(t, "^[A-Z2-7]{26}$", id)
				c.id, c.told = id, id
			}
			assert.Equal(t, c.id, id)
			assert.Equal(t, c.told, told)
			assert.Equal(t, cmp.Or(c.given, c.id), sent, "what the submitter said is passed on")
		})
	}
}

// A submitter whose job failed can name it.
func TestProblemsCarryTheIdentifier(t *testing.T) {
	c := startSidecar(t, setup{upstreams: []string{refusing(t)}, wait: time.Millisecond})
	res, _ := c.post("{}")
	assert.Equal(t, 502, res.StatusCode)
	assert.Equal(t, c.seen(1)[0].ID, res.Header.Get("X-Request-Id"))
}
