package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/capture"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/lab/scenario"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/internal/ruleserver"
	"example.org/pilotfish/pkg/selection"
	"example.org/pilotfish/pkg/trace"
)

// captured writes a sidecar's capture: a job every second of one of three projects, whose
// data was fetched the first time. Every fourth job is long and ends after the others, and
// jobs of a session wait for each other.
func captured(t *testing.T) (path string) {
	t.Helper()
	set := capture.Default()
	set.Path = filepath.Join(t.TempDir(), "jobs.jsonl")
	c, err := capture.New(capture.Config{Settings: set, Failed: func(err error) { t.Error(err) }})
	require.NoError(t, err)
	begin := time.Now()
	for _, i := range []int{1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8} {
		took := 2 * time.Second
		if i%4 == 0 {
			took = 5500 * time.Millisecond
		}
		cache, hint := selection.Cached, &pool.Hint{Waited: 500 * time.Millisecond}
		if i < 3 {
			cache, hint.Fetched = selection.NotCached, time.Second
		}
		c.Add(&record.Job{
			Arrived: begin.Add(time.Duration(i) * time.Second), Read: intake.Full,
			Facts: intake.Facts{
				Project: intake.NewText(fmt.Sprint(i % 3)), Session: intake.NewText(fmt.Sprint("session ", i%5)),
			},
			Outcome: intake.Answered, Completeness: intake.Complete, TTFB: took - 200*time.Millisecond, Total: took,
			Attempts: []record.Attempt{{Upstream: "a:1", Outcome: pool.Answered, Cache: cache, End: took, Hint: hint}},
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c.Run(ctx)
	return set.Path
}

func TestACaptureIsOpenedAsATrace(t *testing.T) {
	in, err := scenario.OpenTrace(captured(t), -1)
	require.NoError(t, err)
	defer in.Close()
	var jobs []trace.Job
	for range 12 {
		job, err := in.Next()
		require.NoError(t, err)
		assert.InDelta(t, float64(len(jobs)), job.Offset, 1e-6, "in the order in which they came")
		assert.InDelta(t, 1, job.Load, 1e-6)
		assert.InDelta(t, 0.2, job.Output, 1e-6)
		jobs = append(jobs, job)
	}
	assert.InDelta(t, 0.3, jobs[1].Operators, 1e-6, "2 s less the wait, the fetch and the output")
	assert.InDelta(t, 4.8, jobs[4].Operators, 1e-6, "5.5 s less the wait and the output")
	assert.Equal(t, trace.Line(6), jobs[10].After, "the sixth job had ended when the eleventh came")
	assert.Zero(t, jobs[5].After, "the first had not ended when the sixth came")
}

func TestACaptureIsSimulated(t *testing.T) {
	path := captured(t)
	text := fmt.Sprintf("runs: [{name: a, policy: expected}]\nfleet: {upstreams: 2, cores: 2}\ntrace: %s\n", path)
	code, out, stderr := tracelab("simulate", write(t, "capture.yaml", text))
	require.Zero(t, code, stderr)
	assert.Contains(t, out, "12 jobs of "+path+", over 11s")
	code, out, stderr = tracelab("simulate", write(t, "fast.yaml", text+"speed: 2\n"))
	require.Zero(t, code, stderr)
	assert.Contains(t, out, "12 jobs of "+path+", over 6s")
	code, _, stderr = tracelab("simulate", write(t, "bad.yaml", "runs: [{name: a, policy: expected}]\nspeed: 2\n"))
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "speed: is for a trace; a workload has jobs and duration")
}

func TestACaptureIsReplayed(t *testing.T) {
	feeds := t.TempDir()
	settings := ruleserver.Defaults()
	settings.TrustCost = true
	server, err := ruleserver.New(ruleserver.Config{Settings: settings, Feeds: os.DirFS(feeds)})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	web := httptest.NewServer(server.Handler())
	t.Cleanup(web.Close)
	var out, problems bytes.Buffer
	code := run([]string{"replay", captured(t), "--target=" + web.URL, "--speed=100", "--feeds=" + feeds}, &out, &problems)
	require.Equal(t, 0, code, problems.String())
	assert.Regexp(t, `\nanswered +12\n`, out.String())
	assert.Regexp(t, `\nfetches per 1,000 +250.0\n`, out.String(), "once for each of three projects")
}

// A capture is shown as a trial: text, a page and figures.
func TestACaptureIsShown(t *testing.T) {
	path, dir := captured(t), t.TempDir()
	var out, errs bytes.Buffer
	require.Zero(t, run([]string{"report", path, "--html", filepath.Join(dir, "trial.html"), "--figures", dir}, &out, &errs), errs.String())
	assert.Contains(t, out.String(), "12 jobs over 14s: 12 complete, 0 partial, 0 absent")
	for _, name := range []string{"trial.html", "jobs-jsonl-timeline.svg", "jobs-jsonl-kpi.svg"} {
		assert.FileExists(t, filepath.Join(dir, name))
	}
	assert.Equal(t, 1, run([]string{"report", path, path}, &out, &errs))
	assert.Contains(t, errs.String(), "not the results of tracelab simulate")
}
