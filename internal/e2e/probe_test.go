package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lagging is an upstream of 16 cores whose jobs take 2 s. Its metrics are from before its current jobs arrived. Jobs of
// project 8 run until the test ends, all others end at once. Responses contain its name.
type lagging struct {
	name, listing string
	began         time.Time
	running       atomic.Int64
	end           chan struct{}
}

func (u *lagging) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/metrics":
		done := time.Since(u.began).Seconds() * 4 / 2 // four cores are working
		fmt.Fprintf(w, "ruleserver_stalled_joblets 0\nruleserver_jobs_running 4\nruleserver_cores 16\nruleserver_cores_busy 4\nruleserver_jobs_completed_total %f\n", done)
	case "/v1/cache/projects":
		_, _ = io.WriteString(w, u.listing)
	case "/v1/load":
		w.Header().Set("X-Load", fmt.Sprintf("running=%d, stalled=0, busy=16", 4+u.running.Load()))
	default:
		w.Header().Set("Upstream", u.name)
		if job, _ := io.ReadAll(r.Body); strings.Contains(string(job), "8") {
			u.running.Add(1)
			<-u.end
		}
	}
}

// One sidecar fills the upstream that has a project's data. Another sidecar has older reports. A probe shows it the load,
// and it sends a job to the other upstream. Without probes the job waits.
func TestASidecarProbesBeforeItSends(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	release := sync.OnceFunc(func() { close(end) })
	serve := func(name, listing string) (*lagging, string) {
		u := &lagging{name: name, listing: listing, began: time.Now(), end: end}
		server := httptest.NewServer(u)
		t.Cleanup(server.Close)
		return u, server.Listener.Addr().String()
	}
	full, has := serve("full", `{"projects": [{"id": 7}, {"id": 8}]}`)
	_, free := serve("free", `{"projects": []}`)
	t.Cleanup(release) // the servers are closed after that
	config := func(probe string) string {
		path := filepath.Join(t.TempDir(), "pilotfish.yaml")
		require.NoError(t, os.WriteFile(path, []byte("reports: {interval: 1s, probe: "+probe+"}\n"), 0o600))
		return path
	}
	launched := func(probe string, upstreams ...string) *sidecar {
		args := []string{"--config", config(probe), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
		for _, u := range upstreams {
			args = append(args, "--upstream", u)
		}
		return start(t, args...)
	}
	post := func(s *sidecar, project int) (upstream string) {
		res, err := http.Post("http://"+s.jobs+"/v1/jobs", "application/json", strings.NewReader(fmt.Sprintf(`{"project_id": %d}`, project)))
		require.NoError(t, err)
		defer res.Body.Close()
		assert.Equal(t, http.StatusOK, res.StatusCode)
		return res.Header.Get("Upstream")
	}
	other, with, without := launched("none", has), launched("/v1/load", has, free), launched("none", has, free)
	var jobs sync.WaitGroup
	const many = 100
	for range many {
		jobs.Go(func() { assert.Equal(t, "full", post(other, 8)) })
	}
	require.Eventually(t, func() bool { return full.running.Load() == many }, patience, tick)
	probed := func(s *sidecar) (n int) {
		res, err := http.Get("http://" + s.admin + "/api/pick?project=7")
		require.NoError(t, err)
		defer res.Body.Close()
		var pick struct {
			Ranking []struct {
				Probe bool   `json:"probe"`
				Cache string `json:"cache"`
			} `json:"ranking"`
		}
		require.NoError(t, json.NewDecoder(res.Body).Decode(&pick))
		for _, r := range pick.Ranking {
			if r.Probe {
				n++
			}
		}
		if len(pick.Ranking) == 0 || pick.Ranking[0].Cache != "cached" { // the first reports have not arrived
			return -1
		}
		return n
	}
	require.Eventually(t, func() bool { return probed(with) == 2 && probed(without) == 0 }, patience, tick, "the service time is known")
	assert.Equal(t, "full", post(without, 7))
	assert.Equal(t, "free", post(with, 7))
	assert.InDelta(t, 2, with.metric("pilotfish_probes_total", "outcome", "answered"), 0)
	release()
	jobs.Wait()
	for _, s := range []*sidecar{other, with, without} {
		s.stop()
	}
}
