package main

import (
	"fmt"
	"math"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
)

// scale is the size of a sidecar's load.
type scale struct{ upstreams, projects, waiting int }

// scaled is the costs at a scale: a claim with its end, a report, a scrape, and the list of upstreams for a scrape, in
// microseconds; and the memory in MB.
type scaled [5]float64

// BenchmarkScale prints a table of the costs by the numbers of upstreams, projects and waiting jobs, and of their
// growth. The growth is the exponent: 1 is linear.
func BenchmarkScale(b *testing.B) {
	first := scale{14, 1000, 1}
	var out strings.Builder
	for b.Loop() {
		out.Reset()
		w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(w, "upstreams\tprojects\twaiting\tclaim us\treport us\tscrape us\tlist us\tMB\tgrowth of each\t\n")
		base := measured(b, first)
		row := func(s scale, got scaled, factor float64) {
			fmt.Fprintf(w, "%d\t%d\t%d\t%.1f\t%.1f\t%.0f\t%.0f\t%.1f\t", s.upstreams, s.projects, s.waiting, got[0], got[1], got[2], got[3], got[4])
			for i := range got {
				if factor != 1 {
					fmt.Fprintf(w, "%.2f ", math.Log(got[i]/base[i])/math.Log(factor))
				}
			}
			fmt.Fprint(w, "\t\n")
		}
		row(first, base, 1)
		for _, n := range []int{1000, 10_000} {
			row(scale{n, first.projects, first.waiting}, measured(b, scale{n, first.projects, first.waiting}), float64(n)/float64(first.upstreams))
		}
		for _, n := range []int{10, 100_000} {
			row(scale{first.upstreams, n, first.waiting}, measured(b, scale{first.upstreams, n, first.waiting}), float64(n)/float64(first.projects))
		}
		row(scale{first.upstreams, first.projects, 10_000}, measured(b, scale{first.upstreams, first.projects, 10_000}), 10_000)
		require.NoError(b, w.Flush())
	}
	b.Log("\n" + out.String())
}

// most is a cache with all projects.
type most int

func (most) Contains(uint64) bool { return true }
func (most) Bytes(uint64) float64 { return 0 }
func (m most) Len() int           { return int(m) }

// measured returns the costs of a sidecar at a scale. Its waiting jobs belong to a project at
// its limit.
func measured(b *testing.B, size scale) (got scaled) {
	was := heap()
	cfg := before("10.0.0.1:80")
	cfg.Projects.Limit, cfg.Queue.Jobs = 1, size.waiting
	s, err := newSidecar(&cfg, nil, source{}, quiet(b))
	require.NoError(b, err)
	set := make([]pool.Upstream, size.upstreams)
	for i := range set {
		set[i].Address = fmt.Sprintf("10.%d.%d.%d:80", i>>16, i>>8&255, i&255)
	}
	s.balancer.Set(set)
	report := func(i int) {
		s.balancer.Report(set[i%len(set)].Address, pool.Report{
			At: time.Now(), Running: [2]float64{3, 0}, Cores: 64, CoresBusy: 3, Completed: -1, Failed: -1, Wait: math.NaN(), Cached: most(size.projects),
		})
	}
	for i := range set {
		report(i)
	}
	claim := func(project int, queue time.Duration) (done func()) {
		now := time.Now()
		j := s.balancer.Begin(dispatch.Request{Project: hash.Mix(uint64(2 + project)), Arrived: now, Queue: queue})
		l, err := s.balancer.Claim(b.Context(), now, j)
		if !assert.NoError(b, err) {
			return func() {}
		}
		return func() {
			l.Answered(time.Now(), true, nil)
			l.Done(time.Now(), pool.Answered)
		}
	}
	for project := range size.projects {
		claim(project, 0)()
	}
	held := claim(-1, 0)
	for range size.waiting {
		go func() { claim(-1, time.Hour)() }()
	}
	until := func(want int) {
		for waiting := -1; waiting != want && !b.Failed(); runtime.Gosched() {
			_, waiting = s.balancer.Counts()
		}
	}
	until(size.waiting)
	s.served.look(time.Now(), quality.Moment{Upstreams: s.balancer.States()})
	for i, do := range []func(i int){
		func(i int) { claim(i*7919%size.projects, 0)() }, report,
		func(int) {
			s.metrics.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil))
		},
		func(int) { s.balancer.States() },
	} {
		times := make([]float64, []int{1000, 1000, 5, 21}[i])
		for k := range times {
			start := time.Now()
			do(k)
			times[k] = float64(time.Since(start)) / 1e3
		}
		slices.Sort(times)
		got[i] = times[len(times)/2]
	}
	got[4] = (heap() - was) / 1e6
	held()
	until(0)
	return got
}

// heap returns the memory of objects and stacks in use, in bytes.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}
