//go:build long

package e2e

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/lab/replay"
	"example.org/pilotfish/internal/report"
	reference "example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/pkg/trace"
)

// The small cluster, live and simulated: servers of so many cores, sidecars, and
// the time between two reports. Five minutes of a trace pass in one.
const (
	liveServers  = 4
	liveCores    = 4
	liveSidecars = 3
	liveInterval = time.Second
	liveSpeed    = 5
)

// A trace played live, through real sidecars before reference servers whose cores
// are virtual, gives what its simulation gives. One policy knows nothing but the
// project, so that every job finds the same server in both; the other learns from
// reports, hints and its own jobs, late and by the clock.
func TestLongLiveAgreesWithSimulation(t *testing.T) {
	jobs := liveTrace(t)
	policies := [...]string{"baseline", "expected"}
	var live [len(policies)]figures
	ran := t.Run("live", func(t *testing.T) { // ends when both have
		for i, policy := range policies {
			t.Run(policy, func(t *testing.T) {
				t.Parallel()
				live[i] = playLive(t, jobs, policy)
			})
		}
	})
	require.True(t, ran)
	for i, policy := range policies {
		simulated := simulate(t, jobs, policy)
		t.Logf("%s\n%9s  %v\n%9s  %v", policy, "live", live[i], "simulated", simulated)
		live[i].agrees(t, policy, simulated)
	}
	// And so live, too, it is better to know more than the project.
	assert.Greater(t, live[0].wait, 1.25*live[1].wait)
}

// playLive plays jobs on a cluster of its own.
func playLive(t *testing.T, jobs []trace.Job, policy string) figures {
	t.Helper()
	feeds := fstest.MapFS{}
	for _, j := range jobs {
		feeds[string(j.Project)+".csv"] = &fstest.MapFile{Data: []byte("id\n1\n")}
	}
	file := filepath.Join(t.TempDir(), "pilotfish.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "selection: {policy: %s}\nreports: {interval: %v}\n", policy, liveInterval), 0o600))
	args := []string{"--config", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	settings := reference.Defaults()
	settings.Cores, settings.TrustCost = liveCores, true
	for range liveServers {
		server, err := reference.New(reference.Config{Settings: settings, Feeds: feeds})
		require.NoError(t, err)
		t.Cleanup(server.Close)
		web := httptest.NewServer(server.Handler())
		t.Cleanup(web.Close)
		args = append(args, "--upstream", web.Listener.Addr().String())
	}
	var targets []string
	for range liveSidecars {
		s := start(t, args...)
		targets = append(targets, "http://"+s.jobs)
	}

	var seen tally
	source := listed(jobs)
	require.NoError(t, replay.Run(t.Context(), replay.Config{
		Source: &source, Targets: targets, Name: "live", Hint: report.ParseHint, Within: 5 * time.Minute,
		Observe: func(r *replay.Result) {
			if !assert.True(t, r.OK(), "line %d: status %d, %v", r.Line, r.Status, r.Err) {
				return
			}
			m := r.Job.Measured
			seen.add(r.Job.Kind, *m.TTLB-r.Late()-*m.Wait, *m.Wait, r.Fetched)
		},
	}))
	return seen.figures()
}
