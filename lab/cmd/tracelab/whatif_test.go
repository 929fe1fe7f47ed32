package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/lab/rivals"
	"example.org/pilotfish/lab/sim"
	"example.org/pilotfish/lab/trace"
)

// day is a fleet and its jobs: projects by Zipf's law, arrivals at two alternating rates (MMPP), and log-normal
// work. It shares no code with package workload.
type day struct {
	name, present, order string
	upstreams, cores     int
	load, burst          float64 // utilisation of the cores without fetches; rate in bursts, divided by the mean
	fetch                float64 // mean duration of a fetch, divided by the mean work
	keys, cached         int     // cached is the number of keys an upstream keeps; 0 means all
	columns              string  // additional columns of the log
}

func (d *day) jobs(seed uint64) (jobs []trace.Job) {
	rng := rand.New(rand.NewPCG(seed, 0))
	zipf := rand.NewZipf(rng, 1.1, 3, uint64(d.keys-1))
	fetches := make([]float64, d.keys)
	for i := range fetches {
		fetches[i] = d.fetch * math.Exp(rng.NormFloat64()*0.6-0.18)
	}
	rate := d.load * float64(d.upstreams*d.cores)
	for at, busy, until := 0.0, false, 0.0; len(jobs) < 8_000; {
		now := rate
		if d.burst > 0 {
			now = map[bool]float64{true: d.burst, false: 0.5}[busy] * rate
		}
		if at += rng.ExpFloat64() / now; d.burst > 0 && at > until {
			if busy = !busy; busy {
				until = at + 10*rng.ExpFloat64()
			} else {
				until = at + 30*rng.ExpFloat64()
			}
		}
		key := zipf.Uint64()
		work := math.Exp(rng.NormFloat64()*0.8 - 0.32)
		jobs = append(jobs, trace.Job{Offset: at, Project: trace.Project(fmt.Sprint(key)), Load: fetches[key], Operators: work, Bytes: 1, Submitter: int64(len(jobs))})
	}
	return jobs
}

// served simulates the day's jobs with a policy, and returns the mean duration and the log.
func (d *day) served(t *testing.T, policy string) (mean float64, log string) {
	t.Helper()
	jobs := d.jobs(3)
	fleet, sidecars := sim.DefaultFleet(), sim.DefaultSidecars()
	fleet.Upstreams, fleet.Cores, fleet.Order, fleet.Cache = d.upstreams, d.cores, d.order, 1<<40
	if d.cached > 0 {
		fleet.Cache = settings.Size(d.cached)
	}
	sidecars.Count, sidecars.Hints = 3, true
	p, err := rivals.New(policy)
	require.NoError(t, err)
	detector, err := overload.Default().Detector()
	require.NoError(t, err)
	var out strings.Builder
	out.WriteString("time,key,duration" + d.columns + "\n")
	n, warm := 0.0, jobs[len(jobs)/10].Offset
	_, err = sim.Run(t.Context(), sim.Config{
		Source: slices.Values(jobs), Seed: 1, Policy: p, Detector: detector, Fleet: fleet, Sidecars: sidecars,
		Observe: func(r *sim.Result) {
			fmt.Fprintf(&out, "%.3f,k%d,%.3f", 1e9+r.Arrived.Seconds(), r.Project, r.LastByte.Seconds())
			if strings.Contains(d.columns, "upstream") {
				fmt.Fprintf(&out, ",u%d", r.Server)
			}
			if strings.Contains(d.columns, "hit") {
				fmt.Fprintf(&out, ",%t", !r.Fetched)
			}
			out.WriteString("\n")
			if r.Arrived.Seconds() >= warm {
				mean += (r.Wait + r.Run).Seconds()
				n++
			}
		},
	})
	require.NoError(t, err)
	return mean / n, out.String()
}

// The result of whatif for logs of other generators is within a tenth of the true one, or
// UNSURE.
func TestWhatifIsRightOrUnsure(t *testing.T) {
	both := ",upstream,hit"
	for _, d := range []day{
		{name: "light", present: "least-in-flight", order: "arrival", upstreams: 8, cores: 4, load: 0.3, fetch: 0.6, keys: 300, columns: both},
		{name: "busy", present: "least-in-flight", order: "arrival", upstreams: 8, cores: 4, load: 0.7, fetch: 0.6, keys: 300, columns: both},
		{name: "bursts, no hits", present: "bounded-hash", order: "arrival", upstreams: 6, cores: 4, load: 0.6, burst: 2.5, fetch: 0.6, keys: 300, columns: ",upstream"},
		{name: "bursts", present: "bounded-hash", order: "arrival", upstreams: 6, cores: 4, load: 0.6, burst: 2.5, fetch: 0.6, keys: 300, columns: both},
		{name: "no upstreams", present: "least-in-flight", order: "arrival", upstreams: 8, cores: 4, load: 0.4, fetch: 0.6, keys: 300, columns: ",hit"},
		{name: "round robin", present: "round-robin", order: "arrival", upstreams: 6, cores: 8, load: 0.5, fetch: 0.8, keys: 400, columns: both},
		{name: "short first", present: "round-robin", order: "known", upstreams: 6, cores: 4, load: 0.75, fetch: 0.8, keys: 400, columns: both},
		{name: "small caches", present: "least-in-flight", order: "arrival", upstreams: 8, cores: 8, load: 0.4, fetch: 1, keys: 400, cached: 60, columns: both},
		{name: "small caches, short first", present: "least-in-flight", order: "known", upstreams: 8, cores: 8, load: 0.7, fetch: 1, keys: 400, cached: 60, columns: both},
		{name: "small caches, no hits", present: "least-in-flight", order: "arrival", upstreams: 8, cores: 8, load: 0.4, fetch: 1, keys: 400, cached: 60, columns: ",upstream"},
		{name: "hash", present: "baseline", order: "arrival", upstreams: 8, cores: 4, load: 0.4, fetch: 0.6, keys: 300, columns: both},
		{name: "another policy than --present", present: "sticky-until", order: "arrival", upstreams: 8, cores: 4, load: 0.5, fetch: 0.6, keys: 300, columns: both},
	} {
		present, log := d.served(t, d.present)
		ours, _ := d.served(t, "expected")
		says := d.present
		if says == "sticky-until" {
			says = "least-in-flight"
		}
		args := []string{"whatif", write(t, "a.csv", log), "--present", says}
		if !strings.Contains(d.columns, "upstream") {
			args = append(args, "--upstreams", fmt.Sprint(d.upstreams))
		}
		code, out, stderr := tracelab(args...)
		require.Zero(t, code, stderr)
		mean := func(who string) (mean float64) {
			row := regexp.MustCompile(fmt.Sprintf(`\n%s[^,]*, %d upstreams(.*)`, who, d.upstreams)).FindStringSubmatch(out)
			require.NotNil(t, row, out)
			_, err := fmt.Sscanf(row[1], "%f %% %f %f %f", new(float64), new(float64), new(float64), &mean)
			require.NoError(t, err, out)
			return mean
		}
		truth, said := ours/present, mean("pilotfish")/mean(says)
		t.Logf("%s: %.2f s, ratio %.2f, said %.2f, unsure %t", d.name, present, truth, said, strings.Contains(out, "UNSURE"))
		if off := said / truth; (off < 0.9 || off > 1.1) && !strings.Contains(out, "UNSURE") {
			t.Errorf("%s: ratio %.2f, said %.2f\n%s", d.name, truth, said, out)
		}
	}
}

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

	d.load, d.cached = 0.9, 0
	_, text = d.served(t, d.present)
	code, out, stderr = tracelab("whatif", write(t, "busy.csv", text))
	require.Zero(t, code, stderr)
	assert.Regexp(t, `UNSURE: jobs waited [0-9.]+ s in the logs, a large part of their duration`, out)
}
