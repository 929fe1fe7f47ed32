package pool

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// large returns a pool of n upstreams. Upstream i reports jobs(i) jobs.
func large(t testing.TB, policy string, n int, jobs func(i int) float64) *fixture {
	f := newFixture(t, policy, n)
	for i, u := range upstreams(n) {
		f.Report(start, u.Address, report(start, jobs(i), 0))
	}
	return f
}

func idle(int) float64 { return 0 }

// seen is the number of upstreams that a claim for the project considers.
func (f *fixture) seen(t testing.TB, project uint64) int {
	ranking, err := f.Explain(start, Request{Project: project})
	require.NoError(t, err)
	return len(ranking)
}

// The number of upstreams that a claim considers does not grow in a large pool.
func TestClaimsConsiderFewUpstreams(t *testing.T) {
	for _, n := range []int{shortlistFrom, 300, 1000} {
		f := large(t, "expected", n, idle)
		assert.Equal(t, shortlistSize, f.seen(t, 5), "%d upstreams", n)
		assert.Equal(t, shortlistSize, f.seen(t, 0), "some, for a job without a project")
	}
	busy := func(int) float64 { return 16 }
	assert.Equal(t, 1000, large(t, "expected", 1000, busy).seen(t, 5), "all where no core is free near by")
	assert.Equal(t, sampleSize, large(t, "expected", sampleFrom, busy).seen(t, 5), "or many")
	assert.Equal(t, shortlistFrom-1, large(t, "expected", shortlistFrom-1, idle).seen(t, 5))
	assert.Equal(t, 300, large(t, "least-in-flight", 300, idle).seen(t, 5), "this policy has no order of upstreams")
}

// With free cores near the project, the choice is nearly always the one among all upstreams.
func TestNearChoicesAgreeWithFullOnes(t *testing.T) {
	const n = 200
	const projects = 300
	rng, same := rand.New(rand.NewPCG(3, 4)), 0
	for project := range uint64(projects) {
		f := large(t, "expected", n, func(int) float64 { return float64(rng.IntN(13)) })
		picked := f.must(start, Request{Project: project + 1}, nil)
		picked.Done(start, Answered)
		c := &candidates{job: selection.Job{Project: project + 1, Fetch: f.fetchOf(project + 1)}}
		f.fillNeed(&c.need, &Request{Project: project + 1}, true)
		f.consider(start, c, f.set, nil, f.rules(start, f.set, false))
		if i := c.choose(f.cfg.Policy, &c.costs, f.cfg.Rand); c.members[i].Address == picked.Address {
			same++
		}
	}
	assert.GreaterOrEqual(t, same, projects*95/100, "picks that are the same")
}

// A job whose near upstreams are full, tried, draining or gone goes to others.
func TestJobsGoBeyondNearUpstreams(t *testing.T) {
	const n, project = 200, 5
	nearest := func(f *fixture) (addresses []string) {
		for _, m := range f.shortlist(nil, f.projects.state(project, true)) {
			addresses = append(addresses, m.Address)
		}
		return addresses
	}
	elsewhere := func(f *fixture, tried ...string) {
		t.Helper()
		assert.NotContains(t, nearest(f), f.must(start.Add(time.Second), Request{Project: project}, tried).Address)
	}
	f := large(t, "expected", n, idle)
	among := nearest(f)
	require.Len(t, among, shortlistSize)
	elsewhere(f, among...)
	for _, address := range among {
		f.Report(start.Add(time.Millisecond), address, report(start.Add(time.Millisecond), 16, 400))
	}
	elsewhere(f)

	f = large(t, "expected", n, idle)
	for _, address := range among {
		f.Drain(address, true)
	}
	elsewhere(f)

	f = large(t, "expected", n, idle)
	f.Set(start, slices.DeleteFunc(upstreams(n), func(u Upstream) bool { return slices.Contains(among, u.Address) }))
	assert.NotContains(t, among, f.must(start, Request{Project: project}, nil).Address, "the near ones are found anew with each set")
}

// The near upstreams of a project are the first of its rendezvous order after each change of the set.
func TestNearUpstreamsAreInRendezvousOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	f, all := newFixture(t, "expected", 0), upstreams(200)
	for range 50 {
		set := slices.DeleteFunc(slices.Clone(all), func(Upstream) bool { return rng.IntN(8) == 0 })
		for i := range set {
			set[i].Weight = float64(1 + rng.IntN(3))
		}
		f.Set(start, set)
		for project := range uint64(20) {
			inOrder := slices.Clone(f.set)
			slices.SortFunc(inOrder, func(a, b *member) int {
				return cmp.Compare(selection.Rendezvous(project+1, b.id, b.Weight), selection.Rendezvous(project+1, a.id, a.Weight))
			})
			require.Equal(t, inOrder[:shortlistSize], f.shortlist(nil, f.projects.state(project+1, true)))
		}
	}
}
