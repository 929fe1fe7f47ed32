package report

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

// BenchmarkPoll is a whole poll without the network.
func BenchmarkPoll(b *testing.B) {
	for _, projects := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("projects=%d", projects), func(b *testing.B) {
			page, listing := goodPage, listingOf(projects)
			c := testConfig()
			c.Transport = carrier(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/metrics" {
					return respond(http.StatusOK, strings.NewReader(page)), nil
				}
				return respond(http.StatusOK, bytes.NewReader(listing)), nil
			})
			c.Report = func(_ string, r pool.Report) { require.Equal(b, projects, r.Cached.Len()) }
			c.Failed = func(_ string, err error) { b.Error(err) }
			p, err := NewPoller(c)
			require.NoError(b, err)
			u := newUpstreamPoller(p, "upstream:1")
			b.ReportAllocs()
			b.SetBytes(int64(len(page) + len(listing)))
			for b.Loop() {
				u.poll(context.Background(), false)
			}
		})
	}
}

// BenchmarkWorstPage reads the most expensive page within the bounds.
func BenchmarkWorstPage(b *testing.B) {
	page := strings.Repeat("a{b=\"c\",d=\"e\",f=\"g\"} 1\n", maxMetricsLines)
	b.ReportAllocs()
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		_, err := readPage(http.Header{}, strings.NewReader(page), maxMetricsLines)
		require.NoError(b, err)
	}
}

// BenchmarkContains asks the sets of all upstreams for a project, as each claim
// does; maps of the same hashes are there to compare with. held-MB is what all
// sets or maps hold.
func BenchmarkContains(b *testing.B) {
	projects := make([]uint64, 10*manyProjects)
	for i := range projects {
		projects[i] = intake.Key(fmt.Sprint(100_000 + i))
	}
	type mapSet map[uint64]struct{}
	for _, upstreams := range []int{manyUpstreams, 1000} {
		b.Run(fmt.Sprintf("set/upstreams=%d", upstreams), func(b *testing.B) {
			benchmarkContains(b, upstreams, projects, func() *projectSet { return newProjectSet(0) },
				func(p *projectSet, project uint64) { p.add(project, 0) }, (*projectSet).Contains)
		})
		b.Run(fmt.Sprintf("map/upstreams=%d", upstreams), func(b *testing.B) {
			benchmarkContains(b, upstreams, projects, func() mapSet { return mapSet{} },
				func(m mapSet, project uint64) { m[project] = struct{}{} },
				func(m mapSet, project uint64) bool { _, ok := m[project]; return ok })
		})
	}
}

func benchmarkContains[S any](b *testing.B, upstreams int, projects []uint64,
	make func() S, add func(S, uint64), contains func(S, uint64) bool) {
	rng := rand.New(rand.NewPCG(3, 4))
	before := heap()
	var sets []S
	for range upstreams {
		set := make()
		for _, i := range rng.Perm(len(projects))[:manyProjects] {
			add(set, projects[i])
		}
		sets = append(sets, set)
	}
	held := heap() - before
	n, found := 0, 0
	for b.Loop() {
		project := projects[n%len(projects)]
		n++
		for _, set := range sets {
			if contains(set, project) {
				found++
			}
		}
	}
	require.NotZero(b, found)
	b.ReportMetric(held/1e6, "held-MB")
}

func BenchmarkParseHint(b *testing.B) {
	h := http.Header{"X-Load": {"at=1763677245.123, running=12, stalled=3, stalled_high=0, cores=16, cached=1, waited=0.004, fetch=1.9"}}
	b.ReportAllocs()
	for b.Loop() {
		_, ok := parseHint(h, noon)
		require.True(b, ok)
	}
}
