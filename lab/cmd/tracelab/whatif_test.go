package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/lab/judge"
	"example.org/pilotfish/lab/rivals"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/workload"
)

func TestWhatif(t *testing.T) {
	d := day{present: "least-in-flight", order: "arrival", upstreams: 4, cores: 4, load: 0.2, fetch: 1, keys: 300, cached: 60, columns: ",upstream,hit"}
	_, text := d.served(t, d.present)
	log, page := write(t, "access.csv", text), t.TempDir()+"/page.html"
	code, out, stderr := tracelab("whatif", log, "--html", page)
	require.Zero(t, code, stderr)
	assert.Regexp(t, `8,000 jobs over 4\d+m\d+s. In the logs 5\d % of them hit the cache`, out)
	assert.Regexp(t, `\nleast-in-flight, 4 upstreams +\d`, out)
	assert.Regexp(t, `\npilotfish, 4 upstreams +\d`, out)
	assert.Regexp(t, `Upstreams needed for today's waits: 3 with the present policy, [34] with pilotfish.*The fleet of 4 is oversized.`, out)
	assert.Contains(t, out, "- There are as many upstreams as the logs name: 4 (--upstreams).")
	assert.Contains(t, out, "- An upstream runs 4 jobs at a time: this fits the logs best (--cores).")
	assert.Contains(t, out, "of 299: this fits the hits in the logs best (--cached).")
	html := read(t, page)
	assert.Contains(t, html, "pilotfish, 4 upstreams")
	assert.NotRegexp(t, `(?i)src=|href=|url\(`, html)

	code, again, stderr := tracelab("whatif", log)
	require.Zero(t, code, stderr)
	assert.Equal(t, out, again)

	code, out, stderr = tracelab("whatif", log, "--cached", "9")
	require.Zero(t, code, stderr)
	assert.Regexp(t, `UNSURE: .*the simulation of the present policy has \d+ % hits, the logs have 5\d %`, out)
	assert.NotContains(t, out, "Upstreams needed")
	assert.NotContains(t, out, "(--cached)", "it was given")
}

func TestWhatifRefuses(t *testing.T) {
	log := write(t, "a.csv", "time,key,duration\n5,a,1\n")
	for want, args := range map[string][]string{
		"the logs name no upstream: set their number with --upstreams": {log},
		`--present "x" is not one of expected, `:                       {log, "--present", "x"},
		"--key: it has no group in parentheses to match the key":       {log, "--key", "x"},
		"--sidecars and --jobs must be above 0":                        {log, "--sidecars", "0"},
		"there is no job in the log":                                   {write(t, "t.jsonl", `{"offset":0}`+"\n")},
	} {
		code, out, stderr := tracelab(append([]string{"whatif"}, args...)...)
		assert.Equal(t, 1, code, want)
		assert.Contains(t, stderr, want)
		assert.Empty(t, out)
	}
}

// For the log of a simulated fleet, whatif's ratio of waits is close to the simulator's.
func TestWhatifOnSimulatedLogs(t *testing.T) {
	for i, pattern := range []workload.Pattern{"schedules", "steady", "schedules", "steady"} {
		s := judge.Setting{Load: []float64{0.4, 0.7}[i/2], Fetch: 1, Workload: workload.Default(), Fleet: sim.DefaultFleet(), Sidecars: sim.DefaultSidecars()}
		s.Fleet.Upstreams, s.Fleet.Cores, s.Sidecars.Count, s.Sidecars.Hints = 8, []int{4, 2, 4, 6}[i], 3, true
		w := &s.Workload
		w.Pattern, w.Jobs, w.Duration, w.StartHour, w.Static, w.MaxWork, w.MaxView, w.MaxBytes = pattern, 8000, 1200, 9, true, 20, 10, 50e6
		jobs, _, err := s.Jobs(99)
		require.NoError(t, err)
		log, waits := &bytes.Buffer{}, map[string]float64{}
		for _, name := range []string{"expected", "least-in-flight"} {
			policy, err := rivals.New(name)
			detector, err2 := overload.Default().Detector()
			require.NoError(t, errors.Join(err, err2))
			*log = *bytes.NewBufferString("time,key,duration,upstream,hit\n")
			_, err = sim.Run(t.Context(), sim.Config{
				Source: slices.Values(jobs), Seed: 1, Policy: policy, Detector: detector, Fleet: s.Fleet, Sidecars: s.Sidecars,
				Observe: func(r *sim.Result) {
					if !r.Prefetch {
						fmt.Fprintf(log, "%.3f,k%d,%.3f,u%d,%t\n", 1e9+r.Arrived.Seconds(), r.Project, r.LastByte.Seconds(), r.Server, !r.Fetched)
						waits[name] += r.Wait.Seconds() / float64(len(jobs))
					}
				},
			})
			require.NoError(t, err)
		}
		code, out, stderr := tracelab("whatif", write(t, "a.csv", log.String()))
		require.Zero(t, code, stderr)
		var now, ours float64
		for policy, wait := range map[string]*float64{"least-in-flight": &now, "pilotfish": &ours} {
			_, row, _ := strings.Cut(out, "\n"+policy+", 8 upstreams")
			_, err := fmt.Sscanf(row, "%f %% %f", new(float64), wait)
			require.NoError(t, err, out)
		}
		off := (ours + 0.1) / (now + 0.1) * (waits["least-in-flight"] + 0.1) / (waits["expected"] + 0.1) // waits below 0.1 s count as equal
		assert.True(t, 0.4 < off && off < 3, "load %v, %s: %.3g times the ratio of %v\n%s", s.Load, pattern, off, waits, out)
		assert.Contains(t, out, fmt.Sprintf("An upstream runs %d jobs at a time", s.Fleet.Cores))
		assert.Equal(t, waits["least-in-flight"] > 1, strings.Contains(out, "UNSURE"), out)
	}
}
