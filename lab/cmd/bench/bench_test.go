//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/test/loopback"
	"example.org/pilotfish/test/program"
)

// built returns a pilotfish that is built from the current sources.
func built(t *testing.T) string {
	t.Helper()
	path, err := program.Build(t.TempDir(), "pilotfish")
	require.NoError(t, err)
	return path
}

// TestMain also replaces wrk, which need not be installed: it submits each job once.
func TestMain(m *testing.M) {
	file := os.Getenv("BODIES")
	if file == "" {
		os.Exit(m.Run())
	}
	bodies, err := os.ReadFile(file)
	all, failed := bytes.Split(bytes.TrimSpace(bodies), []byte("\n"))[:10], 0
	for _, body := range all {
		r, err := http.Post(os.Args[len(os.Args)-1]+os.Getenv("JOB_PATH"), "application/json", bytes.NewReader(body))
		if err != nil || r.StatusCode != http.StatusOK {
			failed++
		}
		if err == nil {
			_ = r.Body.Close()
		}
	}
	fmt.Printf("\n{\"jobs\":%d,\"microseconds\":1000,\"p50\":100,\"failed\":%d}\n", len(all), failed)
	if err != nil {
		os.Exit(1)
	}
}

// A short run of every scenario prints every figure.
func TestSmoke(t *testing.T) {
	pilotfish, path := built(t), t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(path, "wrk")))
	t.Setenv("PATH", path+":"+os.Getenv("PATH"))
	var stdout, stderr bytes.Buffer
	c := compareCommand{
		Pilotfish: []string{"pilotfish=" + pilotfish, "other=" + pilotfish}, Peer: []string{"pilotfish", "other"},
		Rounds: 1, Duration: 50 * time.Millisecond, waiting: 50,
	}
	require.NoError(t, c.Run(cli.Console{Out: &stdout, Err: &stderr}), "%s", &stderr)
	for _, s := range scenarios(50) {
		_, text, found := strings.Cut(stdout.String(), "\n"+s.name+"  ")
		require.True(t, found, "%s", s.name)
		text, _, _ = strings.Cut(text, "\n\n")
		assert.Regexp(t, `\npilotfish +[0-9.]+`, text)
		assert.Regexp(t, `\nother +[0-9.]+`, text)
		if !s.waits {
			assert.Regexp(t, `\nno proxy +[0-9]`, text)
			assert.Equal(t, s.rate == 0, strings.Contains(text, "cpu us/job"), s.name)
			assert.Equal(t, s.rate > 0, strings.Contains(text, "p99.9 us"), s.name)
		}
	}
	assert.Regexp(t, `50 jobs of 4 KB that wait +idle MB +waiting jobs .*\npilotfish +[0-9.]+ +50\.0 +[0-9.]+ +[0-9.]+\n`, stdout.String())
}

// A race sends every job through one and through three sidecars, each with separate servers.
func TestRace(t *testing.T) {
	chart := filepath.Join(t.TempDir(), "race.svg")
	var stdout, stderr bytes.Buffer
	c := raceCommand{Root: "../../..", Pilotfish: built(t), Rounds: 1, Chart: chart, length: time.Second, jobs: 60}
	t.Setenv("PATH", t.TempDir()) // no peer is installed
	require.NoError(t, c.Run(cli.Console{Out: &stdout, Err: &stderr}), "%s", &stderr)
	svg, err := os.ReadFile(chart)
	require.NoError(t, err)
	assert.Equal(t, 3*len(raced), bytes.Count(svg, []byte("<rect")))
	const times, fetches, lost = ` +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+`, ` +[1-9][0-9.]*`, ` +0\.00 +0\.00`
	assert.Regexp(t, `\npilotfish, one sidecar`+times+fetches+lost, stdout.String())
	assert.Regexp(t, `\npilotfish, three sidecars`+times+fetches+lost, stdout.String())
	assert.Regexp(t, `\npilotfish, no Job-Expected`+times+fetches+lost, stdout.String())
}

// An entrant that refuses jobs does not look fast: a lost job counts as having waited until its timeout.
func TestLostJobsCountTheirTimeout(t *testing.T) {
	nobody, err := loopback.Reserve()
	require.NoError(t, err)
	jobs := []trace.Job{{Project: "1", Operators: 1, Timeouts: trace.Timeouts{Queue: 240}}}
	f, err := (&servers{}).play(t.Context(), []string{"http://" + nobody}, jobs)
	require.NoError(t, err)
	assert.InDelta(t, 240, f[0].value, 1, f[0].name)
	assert.Equal(t, []figure{{"fetches per 1,000", 0}, {"lost per 1,000", 1000}}, f[5:7])
}

func TestMissingProgramsAreListed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	others := []string{"HAProxy, hash on body", "HAProxy, leastconn", "nginx, least_conn", "Envoy, Lua + ring hash", "Envoy, least_request"}
	for command, own := range map[string][]string{
		"race --rounds 0 --root ../../..": {"pilotfish, one sidecar", threeSidecars, noHeader}, "compare --rounds 0": {"nowhere", "Envoy, ext_proc", "wrk", "HAProxy, hash on body, log"},
	} {
		var stdout, stderr bytes.Buffer
		args := append(strings.Fields(command), "--envoy", "nowhere", "--pilotfish", "nowhere")
		require.Zero(t, run(args, &stdout, &stderr), "%s", &stderr)
		for _, name := range append(own, others...) {
			assert.Contains(t, stdout.String(), "missing or failed: "+name+": not installed")
		}
		assert.Equal(t, slices.Contains(own, meshName), strings.Contains(stdout.String(), meshName), "a race has no mesh")
	}
}

// Beside the release before, which gets the configuration of its time, a header can replace the body.
func TestConfigurationsOfTheMesh(t *testing.T) {
	for _, s := range []setting{{}, {Header: true}, {Past: true}} {
		path := filepath.Join(t.TempDir(), "mesh.yaml")
		s.Listen = "127.0.0.1:1"
		require.NoError(t, s.write(path, "mesh.yaml"))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, s.Header, strings.Contains(string(text), "request_body_mode: NONE\n"))
		assert.Equal(t, s.Past, strings.Contains(string(text), "response.code_details"))
		assert.Equal(t, s.Past, !strings.Contains(string(text), "skip_envoy_headers"))
	}
	all := peers("nowhere", []string{"new=nowhere", previousName + "=nowhere"})
	past := slices.DeleteFunc(all, func(p peer) bool { return !p.past })
	require.Len(t, past, 1)
	assert.Equal(t, meshName+", previous", past[0].name)
}

func TestNameFilter(t *testing.T) {
	assert.True(t, named("4 KB jobs, 32 connections", nil))
	assert.True(t, named("4 KB jobs, 32 connections", []string{"none", "4 KB"}))
	assert.False(t, named("64 KB jobs, 32 connections", []string{"4 KB"}))
}

// CPU time and added latency are compared within a round.
func TestCostsAreComparedWithinARound(t *testing.T) {
	got := map[string][]figure{direct: {{latency, 5}}, "new": {{cpuPerJob, 30}, {latency, 25}}, "old": {{cpuPerJob, 40}}}
	assert.Equal(t, []figure{{cpuPerJob, 30}, {"added p50 us", 20}}, beside(got, "new", "new"))
	assert.Equal(t, []figure{{cpuPerJob, 40}, {"new's cpu / this", 0.75}}, beside(got, "old", "new"))
	assert.Equal(t, []figure{{cpuPerJob, 40}}, beside(map[string][]figure{"old": got["old"]}, "old", "new"))
	r := &results{}
	for _, v := range []float64{3, 1, 200} {
		r.add("jobs", "old", []figure{{"x", v}}, nil)
	}
	var out bytes.Buffer
	require.NoError(t, r.WriteText(&out))
	assert.Contains(t, out.String(), "jobs                   x\nold   3.00 (1.00 to 200)\n")
}

// Bodies have the required size, are valid jobs, and end with their project.
func TestBodies(t *testing.T) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		all := bodies(&scenario{body: size, deep: size == 4<<10})
		require.NotEmpty(t, all)
		for _, b := range []int{0, len(all) - 1} {
			var job struct {
				Project int `json:"project_id"`
			}
			require.Len(t, all[b], size)
			require.NoError(t, json.Unmarshal(all[b], &job))
			assert.Equal(t, b, job.Project)
			assert.Regexp(t, `"project_id":\d+}$`, string(all[b][size-30:]))
		}
	}
}

// An Envoy and its pilotfish are one peer: they start one after the other, their figures are added, and both are stopped.
func TestEnvoyAndPilotfishAreOnePeer(t *testing.T) {
	dir, pilotfish := t.TempDir(), built(t)
	envoy := filepath.Join(dir, "envoy")
	// A pilotfish at Envoy's address replaces Envoy.
	require.NoError(t, os.WriteFile(envoy, []byte(`#!/bin/sh
for config; do :; done
test -S `+dir+`/mesh.sock && grep -q "path: `+dir+`/mesh.sock" "$config" || exit 1
exec `+pilotfish+` serve --admin 127.0.0.1:0 --upstream 127.0.0.1:1 --listen 127.0.0.1:$(sed -n 's/.*port_value: \([0-9]*\).*/\1/p' "$config" | head -1)
`), 0o700))
	all := peers(envoy, []string{"pilotfish=" + pilotfish})
	for i := range all {
		if all[i].name != meshName {
			continue
		}
		both, _, err := all[i].start(t.Context(), setting{Dir: dir, Upstreams: []string{"127.0.0.1:1", "127.0.0.1:2"}}, 4<<10)
		require.NoError(t, err)
		defer both.stop()
		count := func(procfs.Proc) (float64, error) { return 1, nil }
		programs, err := both.sum(count)
		require.NoError(t, err)
		assert.Equal(t, 2.0, programs)
		both.stop()
		programs, err = both.sum(count)
		require.NoError(t, err)
		assert.Zero(t, programs)
		return
	}
	t.Fatal("no such peer")
}

// A ratio is pilotfish's figure divided by the best peer's figure of the same round.
func TestRatiosOfARace(t *testing.T) {
	r := &results{}
	for _, round := range [][]float64{{2, 10, 4}, {3, 6, 12}} {
		for i, name := range []string{"pilotfish, one sidecar", "a", "b"} {
			r.add("jobs", name, []figure{{meanWait, round[i]}, {p99Wait, 2 * round[i]}, {meanTime, 1 + round[i]}}, nil)
		}
	}
	assert.Equal(t, "pilotfish, one sidecar, over the best of the others: mean wait, low 0.50 (0.50 to 0.50) times; p99 wait, low 0.50 (0.50 to 0.50) times; mean duration, low 0.59 (0.57 to 0.60) times\n\n",
		r.tables[0].ratios())
}
