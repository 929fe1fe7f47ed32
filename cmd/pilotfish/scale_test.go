package main

import (
	"fmt"
	"math"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"
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

// BenchmarkScale measures, for several numbers of upstreams, projects and waiting jobs:
//   - the duration of each operation;
//   - ms-longest-wait: the longest time that a job waits for locks during an operation, the median of five operations;
//   - MB: the memory of the sidecar.
func BenchmarkScale(b *testing.B) {
	for _, size := range []scale{{14, 1000, 1}, {1000, 1000, 1}, {10_000, 1000, 1}, {14, 10, 1}, {14, 100_000, 1}, {14, 1000, 10_000}} {
		b.Run(fmt.Sprintf("%d upstreams, %d projects, %d waiting", size.upstreams, size.projects, size.waiting), func(b *testing.B) {
			before := heap()
			l := newLaden(b, size)
			defer l.end()
			memory := heap() - before
			for _, operation := range []struct {
				name string
				do   func(l *laden, i int)
			}{
				{"a claim and its end", (*laden).job},
				{"a report", (*laden).report},
				{"a scrape", (*laden).scrape},
				{"the list of upstreams", func(l *laden, _ int) { l.balancer.States() }},
				{"a new set with a tenth of the upstreams replaced", func(l *laden, i int) {
					n := len(l.set)
					l.balancer.Set(numbered(n, (i+1)%2*(n+9)/10))
				}},
				{"api now", func(l *laden, _ int) { l.now() }},
				{"api pick", func(l *laden, i int) { _, _ = l.balancer.Explain(pool.Request{Project: uint64(i)}) }},
				{"the modes of upstreams", (*laden).look},
				{"learned durations", func(l *laden, _ int) { l.balancer.Lengths() }},
			} {
				b.Run(operation.name, func(b *testing.B) {
					for i := 0; b.Loop(); i++ {
						operation.do(l, i)
					}
					var longest []float64
					for i := range 5 {
						longest = append(longest, l.wait(func() { operation.do(l, i) }))
					}
					slices.Sort(longest)
					b.ReportMetric(longest[2], "ms-longest-wait")
					b.ReportMetric(memory/1e6, "MB")
				})
			}
		})
	}
}

// most is a cache with all projects.
type most int

func (most) Contains(uint64) bool { return true }
func (most) Bytes(uint64) float64 { return 0 }
func (m most) Len() int           { return int(m) }

// laden is a sidecar at a scale. Its waiting jobs belong to a project at its limit.
type laden struct {
	*sidecar
	b    *testing.B
	size scale
	set  []pool.Upstream
	end  func() // of the waiting jobs
}

func newLaden(b *testing.B, size scale) *laden {
	cfg := before("10.0.0.1:80")
	cfg.Projects.Limit, cfg.Queue.Jobs = 1, size.waiting
	s, err := newSidecar(&cfg, nil, source{}, quiet(b))
	require.NoError(b, err)
	l := &laden{sidecar: s, b: b, size: size, set: numbered(size.upstreams, 0)}
	s.balancer.Set(l.set)
	for i := range l.set {
		l.report(i)
	}
	for project := range size.projects {
		l.claim(project, 0)()
	}
	held := l.claim(-1, 0)
	for range size.waiting {
		go func() { l.claim(-1, 1000*time.Hour)() }()
	}
	until := func(want int) {
		for waiting := -1; waiting != want && !b.Failed(); runtime.Gosched() {
			_, waiting = s.balancer.Counts()
		}
	}
	until(size.waiting)
	l.end = func() {
		held()
		until(0)
	}
	l.look(0)
	return l
}

// numbered returns n upstreams with consecutive addresses; from is the number of the first one.
func numbered(n, from int) []pool.Upstream {
	set := make([]pool.Upstream, n)
	for i := range set {
		k := i + from
		set[i].Address = fmt.Sprintf("10.%d.%d.%d:80", k>>16, k>>8&255, k&255)
	}
	return set
}

func (l *laden) report(i int) {
	l.balancer.Report(l.set[i%len(l.set)].Address, pool.Report{
		At: time.Now(), Running: [2]float64{3, 0}, Cores: 64, CoresBusy: 3, Completed: -1, Failed: -1, Wait: math.NaN(), Cached: most(l.size.projects),
	})
}

func (l *laden) claim(project int, queue time.Duration) (done func()) {
	now := time.Now()
	j := l.balancer.Begin(dispatch.Request{Project: hash.Mix(uint64(2 + project)), Arrived: now, Queue: queue})
	lease, err := l.balancer.Claim(l.b.Context(), now, j)
	if !assert.NoError(l.b, err) {
		return func() {}
	}
	return func() {
		lease.Answered(time.Now(), true, nil)
		lease.Done(time.Now(), pool.Answered)
	}
}

func (l *laden) job(i int) { l.claim(i*7919%l.size.projects, 0)() }

func (l *laden) scrape(int) {
	l.metrics.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil))
}

func (l *laden) look(int) {
	l.served.advance(time.Now(), quality.Moment{Upstreams: l.balancer.States()})
}

// wait returns the longest time in milliseconds that a job waits for a lock during an operation.
func (l *laden) wait(operation func()) float64 {
	var longest time.Duration
	begun, done, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for close(begun); ; time.Sleep(20 * time.Microsecond) {
			start := time.Now()
			l.balancer.Counts()
			l.served.began(start, &dispatch.Job{}, pool.Choice{Claimed: start}, nil)
			l.metrics.ReportFailed("")
			longest = max(longest, time.Since(start))
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	<-begun
	operation()
	close(done)
	<-ended
	return longest.Seconds() * 1e3
}

// heap returns the memory of objects and stacks in use, in bytes.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}
