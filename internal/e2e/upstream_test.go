package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/fakeupstream"
)

// echoing starts an upstream that responds with the job itself and its name. It returns its
// host:port.
func echoing(t *testing.T, name string) string {
	t.Helper()
	return handling(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Upstream", name)
		_, _ = io.Copy(w, r.Body)
	})
}

// Placement is sticky even for servers that report nothing (docs/claims.md).
func TestPlainServersGetTheProjectsTheyHave(t *testing.T) {
	t.Parallel()
	const servers, projects, jobs = 3, 20, 300
	var mu sync.Mutex
	hits := 0
	var upstreams []string
	for range servers {
		cached := map[string]bool{}
		upstreams = append(upstreams, handling(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				http.NotFound(w, r) // no metrics and no listing
				return
			}
			job, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			if cached[string(job)] {
				hits++
			}
			cached[string(job)] = true
		}))
	}
	s := start(t, options(t, "", upstreams...)...)
	for n := range jobs {
		require.Equal(t, http.StatusOK, s.post(fmt.Sprintf(`{"project_id": %d}`, n*7%projects)).status)
	}
	s.Stop()
	assert.Equal(t, jobs-projects, hits, "each project is fetched once")
}

// A prefetch through the sidecar loads the project's data, and the next job is sent there and finds it.
func TestPrefetch(t *testing.T) {
	t.Parallel()
	var upstreams []string
	for range 3 {
		upstreams = append(upstreams, fakeupstream.New(t, fakeupstream.Options{Cost: "fetch=100ms"}).Address())
	}
	const config = "job: {prefetch: {path: /v1/prefetch}}\nstream: {explain_headers: true}\nlog: {jobs: all}\n"
	var marked []bool // each job's line: whether it has the field prefetch
	s := launch(t, serving(options(t, config, upstreams...)...), func(line []byte) {
		marked = append(marked, bytes.Contains(line, []byte(`"prefetch":true`)))
	})
	prefetch := call(t, http.MethodPost, "http://"+s.jobs+"/v1/prefetch", `{"project_id": 12345}`)
	s.eventually(1, "pilotfish_prefetches_total")
	job := s.post(fakeupstream.ExampleJob())
	assert.Equal(t, []int{http.StatusNoContent, http.StatusOK}, []int{prefetch.status, job.status})
	assert.Equal(t, prefetch.header.Get("Pilotfish-Upstream"), job.header.Get("Pilotfish-Upstream"))
	assert.Contains(t, prefetch.header.Get("X-Load"), "cached=0")
	assert.Contains(t, job.header.Get("X-Load"), "cached=1")
	assert.Contains(t, job.header.Get("Pilotfish-Why"), " prefetched")
	for _, name := range []string{"pilotfish_prefetches_total", "pilotfish_prefetches_used_total", "pilotfish_jobs_total", "pilotfish_picks_total"} {
		s.eventually(1, name)
	}
	s.Stop()
	assert.Equal(t, []bool{true, false}, marked)
}

// lagging is an upstream of 16 cores whose jobs take 2 s. Its metrics are from before the jobs arrived that a probe shows.
func lagging(t *testing.T, name, listing string, running int) (address string) {
	began := time.Now()
	return handling(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
			done := time.Since(began).Seconds() * 4 / 2 // four cores are working
			fmt.Fprintf(w, "ruleserver_stalled_joblets 0\nruleserver_jobs_running 4\nruleserver_cores 16\nruleserver_cores_busy 4\nruleserver_jobs_completed_total %f\n", done)
		case "/v1/cache/projects":
			_, _ = io.WriteString(w, listing)
		case "/v1/load":
			assert.Equal(t, "project=7", r.URL.RawQuery)
			w.Header().Set("X-Load", fmt.Sprintf("running=%d, stalled=0, busy=16", running))
		default:
			w.Header().Set("Upstream", name)
		}
	})
}

// The upstream that has a project's data is full since its last report. A probe shows the load, and the job is sent to the
// other upstream. Without probes the job would wait.
func TestASidecarProbesBeforeItSends(t *testing.T) {
	t.Parallel()
	full := lagging(t, "full", `{"projects": [{"id": 7}]}`, 104)
	free := lagging(t, "free", `{"projects": []}`, 4)
	s := start(t, options(t, "reports: {interval: 1s, probe: /v1/load}\n", full, free)...)
	require.Eventually(t, func() bool {
		var pick struct {
			Ranking []struct {
				Probe bool
				Cache string
			}
		}
		s.get("/api/pick?project=7", &pick)
		r := pick.Ranking
		return len(r) == 2 && r[0].Cache == "cached" && r[0].Probe && r[1].Probe
	}, patience, tick, "the service time and the caches are known")
	// On a busy machine, a probe can take longer than its limit of 20 ms.
	require.Eventually(t, func() bool { return s.post(`{"project_id": 7}`).header.Get("Upstream") == "free" }, patience, tick)
	assert.Positive(t, s.metric("pilotfish_probes_total", "outcome", "answered"))
	s.Stop()
}
