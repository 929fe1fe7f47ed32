package report

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// A probe reads the load from the response header, in each format that responses to jobs can have. A response without a
// load, an error and a redirect to another server fail the probe of that upstream only.
func TestProbe(t *testing.T) {
	asked := make(chan string, 10)
	serve := func(status int, header, value, body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.Method + " " + r.URL.RequestURI()
			w.Header().Set(header, value)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	const load, orca = "running=12, stalled=3, busy=11, cached=1", "TEXT named_metrics.running=12, named_metrics.stalled=3, named_metrics.busy=11, named_metrics.cached=1"
	good := serve(200, "X-Load", load, "")
	c := testConfig()
	c.Settings.Probe = "/load?of=me"
	failed := map[string]string{}
	var mu sync.Mutex
	c.Probed = func(address string, err error) {
		mu.Lock()
		defer mu.Unlock()
		if failed[address] = "no"; err != nil {
			failed[address] = err.Error()
		}
	}
	s := New(c)
	defer s.client.CloseIdleConnections()
	addresses := []string{
		good, serve(200, orcaHeader, orca, "the body does not matter"), serve(404, "X-Load", load, ""), serve(200, "X-Other", load, ""),
		serve(302, "Location", "http://"+good+"/load", ""), "127.0.0.1:1",
	}
	loads := s.Probe(t.Context(), addresses, "a&b /é", patience)
	for i, load := range loads[:2] {
		require.NotNil(t, load, i)
		assert.Equal(t, []float64{12, 3, 11}, []float64{load.Running[0], load.Stalled[0], load.CoresBusy})
		assert.True(t, load.Known && load.Cached)
		assert.Equal(t, "no", failed[addresses[i]])
	}
	assert.Equal(t, make([]*pool.Hint, 4), loads[2:])
	for i, want := range []string{"404", "no load", "302", "refused"} {
		assert.Contains(t, failed[addresses[2+i]], want)
	}
	for range 5 {
		assert.Equal(t, "GET /load?of=me&project=a%26b+%2F%C3%A9", <-asked)
	}
	s.cfg.Settings.Probe = "/load"
	s.Probe(t.Context(), addresses[:1], "7", patience)
	s.Probe(t.Context(), addresses[:1], "", patience)
	assert.Equal(t, []string{"GET /load?project=7", "GET /load"}, []string{<-asked, <-asked})
}

// All probes run at the same time. One that hangs takes no longer than the timeout, and the results of
// the others count.
func TestAProbeIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := map[string]time.Duration{"a:1": 3 * time.Millisecond, "b:1": time.Hour, "c:1": 4 * time.Millisecond}
		f := newFleet(t, func(c *Config) { c.Probed = func(string, error) {} })
		f.answer = func(r *http.Request) (*http.Response, error) {
			if err := after(r, takes[r.URL.Host]); err != nil {
				return nil, err
			}
			resp := respond(http.StatusOK, http.NoBody)
			resp.Header.Set("X-Load", fmt.Sprintf("at=%d, running=1, stalled=0", time.Now().Unix()-30)) // its clock is slow
			return resp, nil
		}
		begun := time.Now()
		loads := f.Probe(t.Context(), []string{"a:1", "b:1", "c:1"}, "", 20*time.Millisecond)
		assert.Equal(t, 20*time.Millisecond, time.Since(begun))
		require.NotNil(t, loads[0])
		assert.Equal(t, 1500*time.Microsecond, loads[0].At.Sub(begun), "midway between request and response")
		assert.True(t, loads[1] == nil && loads[2] != nil)
		begun = time.Now()
		f.Probe(t.Context(), []string{"a:1", "c:1"}, "", 20*time.Millisecond)
		assert.Equal(t, 4*time.Millisecond, time.Since(begun))
	})
}

// The settings determine which upstreams can be probed: those whose reports are polled.
func TestProbesNeedPolling(t *testing.T) {
	with := func(change func(*Settings)) bool {
		s := Default()
		change(&s)
		return s.Probes()
	}
	assert.True(t, with(func(*Settings) {}))
	assert.False(t, with(func(s *Settings) { s.Probe = none }))
	assert.False(t, with(func(s *Settings) { s.Instead = none }))
	assert.False(t, with(func(s *Settings) { s.HealthCheckPath = "/healthz" }))
	assert.False(t, with(func(s *Settings) { s.Prometheus = "http://prometheus:9090" }))
}
