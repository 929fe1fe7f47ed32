//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain also is the programs that bench starts of itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "upstreams" || os.Args[1] == "relay" || os.Args[1] == "reverse-proxy" || os.Args[1] == "mesh") {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// Every scenario runs, in small, and every figure is there. How large it is does not matter.
func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	pilotfish := filepath.Join(dir, "pilotfish")
	out, err := exec.Command("go", "build", "-o", pilotfish, "example.org/pilotfish/cmd/pilotfish").CombinedOutput()
	require.NoError(t, err, "%s", out)
	file := filepath.Join(dir, "figures.json")
	var stdout, stderr bytes.Buffer
	code := run([]string{
		"compare", "--builtin", "--rounds", "1", "--duration", "50ms", "--probes", "5", "--settle", "10ms", "--patience", "1m", "--waiting", "50", "--stream", "1000000",
		"--pilotfish", "pilotfish=" + pilotfish, "--peer", "pilotfish", "--peer", "(Go)", "--json", file,
	}, &stdout, &stderr)
	require.Zero(t, code, "%s", &stderr)

	var r results
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &r))
	assert.Empty(t, r.Missing)
	assert.Equal(t, []string{"direct", "TCP relay (Go)", "pilotfish", "ReverseProxy (Go)"}, r.Peers)
	require.Len(t, r.Scenarios, 10)
	for _, s := range r.Scenarios {
		assert.Contains(t, stdout.String(), s.Name)
		figures := r.Figures[s.Name]["pilotfish"]
		assert.NotEmpty(t, figures, s.Name)
		for name, values := range figures {
			assert.Len(t, values, 1, "%s: %s", s.Name, name)
			for _, v := range values {
				assert.False(t, math.IsNaN(v) || math.IsInf(v, 0), "%s: %s", s.Name, name)
			}
		}
	}
	assert.Equal(t, "pilotfish", r.Subject)
	assert.Equal(t, []float64{50}, r.Figures["50 jobs of 4 KB that wait"]["pilotfish"]["waiting jobs"])
	assert.Regexp(t, `(?m)^\|pilotfish\|`, stdout.String())
}

func TestNamed(t *testing.T) {
	assert.True(t, named("4 KB jobs, 32 connections", nil))
	assert.True(t, named("4 KB jobs, 32 connections", []string{"none", "4 KB"}))
	assert.True(t, named("4 KB jobs, 32 connections", []string{"32"}))
	assert.False(t, named("64 KB jobs, 32 connections", []string{"4 KB"}))
}

// What a round costs is compared within that round.
func TestCostsAreComparedRoundByRound(t *testing.T) {
	r := newResults("new")
	r.add("jobs", map[string]map[string]float64{direct: {"cpu us/job": 0}, "new": {"cpu us/job": 30}, "old": {"cpu us/job": 40}})
	r.add("jobs", map[string]map[string]float64{"old": {"cpu us/job": 41}})
	r.add("jobs", map[string]map[string]float64{"new": {"cpu us/job": 90}, "old": {"cpu us/job": 60}})
	assert.Equal(t, []float64{0.75, 1.5}, r.Figures["jobs"]["old"]["new's cpu / this"])
	assert.NotContains(t, r.Figures["jobs"]["new"], "new's cpu / this")
	assert.NotContains(t, r.Figures["jobs"][direct], "new's cpu / this")
}

// The parts of a profile share its whole time out, each sample to one part.
func TestProfilesAreSharedOut(t *testing.T) {
	traces := []byte(`File: pilotfish
Duration: 9s, Total samples = 80ms
-----------+-------------------------------------------------------
      10ms   runtime.mallocgc
             example.org/pilotfish/internal/intake.ReadBody
             example.org/pilotfish/internal/proxy.(*Proxy).ServeHTTP
-----------+-------------------------------------------------------
      10ms   example.org/pilotfish/internal/proxy/lazyconn.tryRead
             example.org/pilotfish/internal/proxy/lazyconn.(*Conn).fill
             example.org/pilotfish/internal/proxy/lazyconn.(*Conn).ask
             example.org/pilotfish/internal/proxy/lazyconn.(*Conn).Ask
             example.org/pilotfish/internal/proxy/upstreamclient.(*Client).Do
             example.org/pilotfish/internal/proxy.(*Proxy).ServeHTTP
-----------+-------------------------------------------------------
      20ms   example.org/pilotfish/internal/proxy/lazyconn.tryWrite
             example.org/pilotfish/internal/proxy/lazyconn.(*Conn).put
             example.org/pilotfish/internal/proxy/lazyconn.(*Conn).ask
             example.org/pilotfish/internal/proxy/lazyconn.(*Conn).Ask
             example.org/pilotfish/internal/proxy/upstreamclient.(*Client).Do
             example.org/pilotfish/internal/proxy.(*Proxy).ServeHTTP
-----------+-------------------------------------------------------
      40ms   main.else (inline)
-----------+-------------------------------------------------------
`)
	assert.Equal(t, map[string]float64{"taking in the body": 10, "reading from the upstream": 10, "writing to the upstream": 20, "anything else": 40, total: 80}, share(traces, 80))
}

func TestWhatIsNotInstalledIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var stdout, stderr bytes.Buffer
	code := run([]string{"compare", "--rounds", "0", "--envoy", "nowhere", "--pilotfish", "pilotfish=nowhere"}, &stdout, &stderr)
	require.Zero(t, code, "%s", &stderr)
	for _, name := range []string{"HAProxy, hash on body", "HAProxy, leastconn", "nginx, least_conn", "Envoy, ext_proc", "Envoy, Lua + ring hash", "Envoy, least_request", "pilotfish", "wrk"} {
		assert.Contains(t, stdout.String(), "missing: "+name+": not installed")
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Zero(t, run([]string{"--help"}, &stdout, &stderr), "%s", &stderr)
	assert.Contains(t, stdout.String(), "relay --listen=STRING --upstream=STRING [flags]")
}

// Bodies have the size that they should have, are jobs, and end with their project.
func TestBodies(t *testing.T) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		all := bodies(size)
		require.NotEmpty(t, all)
		for i, b := range []int{0, len(all) - 1} {
			var job struct {
				Project int `json:"project_id"`
			}
			require.Len(t, all[b], size)
			require.NoError(t, json.Unmarshal(all[b], &job), "%d", i)
			assert.Equal(t, b, job.Project)
			assert.Regexp(t, `"project_id":\d+}$`, string(all[b][size-30:]))
		}
	}
}

// An Envoy and its pilotfish start and end together.
func TestEnvoyAndPilotfishAreOnePeer(t *testing.T) {
	dir := t.TempDir()
	pilotfish, envoy := filepath.Join(dir, "pilotfish"), filepath.Join(dir, "envoy")
	out, err := exec.Command("go", "build", "-o", pilotfish, "example.org/pilotfish/cmd/pilotfish").CombinedOutput()
	require.NoError(t, err, "%s", out)
	// It stands for Envoy: it says how it was started, and waits. It starts nobody else.
	require.NoError(t, os.WriteFile(envoy, []byte("#!/bin/sh\necho \"$@\" > "+dir+"/said\nexec sleep 600\n"), 0o700))
	self, err := os.Executable()
	require.NoError(t, err)
	p := meshPeer(self, envoy, "pilotfish="+pilotfish)
	s := setting{Dir: dir, Listen: "127.0.0.1:1", Upstreams: []string{"127.0.0.1:1", "127.0.0.1:2"}, Buffer: 1 << 20}
	config := filepath.Join(dir, p.config)
	require.NoError(t, s.write(config, p.config))
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	assert.Contains(t, string(text), "pipe: {path: "+dir+"/mesh.sock}")

	both, err := start(filepath.Join(dir, "output"), p.program, p.args(s, config)...)
	require.NoError(t, err)
	defer both.stop()
	var said string
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "said"))
		said = string(text)
		return err == nil && strings.HasSuffix(said, "\n")
	}, time.Minute, 10*time.Millisecond, "%s", both.said())
	assert.Contains(t, said, "--config-path "+config)
	require.NoError(t, both.ready(t.Context(), "unix", filepath.Join(dir, "mesh.sock")), "pilotfish can be asked before Envoy starts")
	ids, err := both.family()
	require.NoError(t, err)
	assert.Len(t, ids, 3, "both count")
	both.stop()
	for _, id := range ids[1:] {
		require.Eventually(t, func() bool {
			fields, err := statFields(fmt.Sprintf("/proc/%d/stat", id))
			return err != nil || fields[0] == "Z" // it has ended, and nobody has asked how
		}, time.Minute, 10*time.Millisecond)
	}
}
