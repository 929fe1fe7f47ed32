package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/lab/replay"
	"example.org/pilotfish/internal/lab/workload"
	"example.org/pilotfish/internal/report"
	reference "example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/pkg/trace"
)

// generated is a workload's jobs, as a source.
type generated struct {
	*workload.Generator
	projects map[trace.Project]bool // of the jobs so far
}

func (g *generated) Next() (trace.Job, error) {
	job, err := g.Generator.Next()
	if err == nil {
		g.projects[job.Project] = true
	}
	return job, err
}

func newGenerated(t *testing.T) *generated {
	t.Helper()
	c := workload.Default()
	c.Seed, c.Jobs, c.Duration, c.StartHour, c.Submitters, c.Static = 9, 300, 100, 10, 12, true
	c.Population.Bytes, c.Population.BytesSpread = 24e6, 0.8
	c.Population.WorkSpread, c.Session.WorkSpread = 0.8, 0.8
	// No time runs out, however slow the machine is.
	c.LowTimeouts = trace.Timeouts{Queue: 1e4, Evaluate: 1e4, Stream: 1e4}
	c.HighTimeouts = c.LowTimeouts
	g, err := workload.New(c)
	require.NoError(t, err)
	return &generated{g, map[trace.Project]bool{}}
}

// A trace played through three sidecars before four reference servers. All
// sidecars send a project to the same server, by a policy that knows nothing but
// the project: so its data is fetched once. Only counts are compared: package sim
// compares times with the simulator's, in fake time.
func TestReplayThroughSidecars(t *testing.T) {
	t.Parallel()
	feeds := fstest.MapFS{}
	for all := newGenerated(t); ; {
		job, err := all.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		feeds[string(job.Project)+".csv"] = &fstest.MapFile{Data: []byte("id\n1\n")}
	}
	file := filepath.Join(t.TempDir(), "pilotfish.yaml")
	require.NoError(t, os.WriteFile(file, []byte("selection: {policy: baseline}\nretry: {connect_timeout: 1m}\nstream: {explain_headers: true}\n"), 0o600))
	args := []string{"--config", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	for range 4 {
		s := reference.Defaults()
		s.TrustCost = true
		server, err := reference.New(reference.Config{Settings: s, Feeds: feeds})
		require.NoError(t, err)
		t.Cleanup(server.Close)
		web := httptest.NewServer(server.Handler())
		t.Cleanup(web.Close)
		args = append(args, "--upstream", web.Listener.Addr().String())
	}
	settings := replay.Defaults()
	settings.Speed = 50
	for range 3 {
		settings.Targets = append(settings.Targets, "http://"+start(t, args...).jobs)
	}

	source := newGenerated(t)
	servers := map[trace.Project]string{} // of each project
	jobs, fetches := 0, 0
	require.NoError(t, replay.Run(t.Context(), replay.Config{
		Settings: settings, Source: source, Name: "live", Hint: report.Default().Hint,
		Observe: func(r *replay.Result) {
			if !assert.True(t, r.OK(), "line %d: status %d, %v", r.Line, r.Status, r.Err) {
				return
			}
			jobs++
			if r.Fetched {
				fetches++
			}
			project, server := r.Job.Project, r.Job.Measured.Upstream
			if servers[project] == "" {
				servers[project] = server
			}
			assert.Equal(t, servers[project], server, "line %d: project %s", r.Line, project)
		},
	}))
	assert.Equal(t, 300, jobs)
	assert.Len(t, servers, len(source.projects))
	assert.Equal(t, len(source.projects), fetches, "each project's data is fetched once")
	used := map[string]bool{}
	for _, server := range servers {
		used[server] = true
	}
	assert.Len(t, used, 4, fmt.Sprint(servers))
}
