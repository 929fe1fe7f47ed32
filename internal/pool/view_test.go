package pool

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// witness is a policy that takes the first and remembers what it was shown.
type witness struct {
	job   selection.Job
	views []selection.View
}

func (w *witness) Pick(job selection.Job, views []selection.View, _ *rand.Rand) int {
	w.job, w.views = job, slices.Clone(views)
	return 0
}

// TestViews checks all that a policy sees of an upstream with a fresh report,
// of one whose report is stale, and of one that is new.
func TestViews(t *testing.T) {
	f, w := newFixture(t, "random", 0), &witness{}
	f.cfg.Policy = w
	us := upstreams(2)
	us[0].Weight, us[0].StopsAt = 2, start.Add(time.Hour)
	us[1].Cores, us[1].StartedAt = 4, start.Add(-time.Hour)
	f.Set(start, us)
	stale := report(start, 50, 10)
	stale.Cores = 0
	f.Report(start, us[1].Address, stale)
	r := report(start.Add(time.Minute), 5, 2, 7)
	r.Running[selection.High], r.Stalled[selection.High], r.CoresBusy = 3, 1, 4
	f.Report(start.Add(time.Minute), us[0].Address, r)
	f.Set(start.Add(time.Minute), append(us, upstreams(3)[2]))
	now := start.Add(time.Minute + 2*time.Second)
	for _, tried := range [][]string{nil, {us[0].Address}} { // jobs at the first, and at the second
		_, err := f.Claim(now, Request{Project: 7, Priority: selection.High}, tried)
		require.NoError(t, err)
	}
	now = now.Add(500 * time.Millisecond)
	_, err := f.Claim(now, Request{Project: 7}, nil)
	require.NoError(t, err)

	forever := math.Inf(1)
	want := []selection.View{
		{
			ID: f.members[us[0].Address].id, Weight: 2, Cores: 16, Cache: selection.Cached, Warm: 1, FetchFactor: 1,
			InFlight: 1, Assigned: 12, Jobs: 12, Stalled: 3, Age: 2.5,
			IdleCPU: 0.75, IdleIO: 1, Uptime: forever, Left: 3600 - 62.5,
		},
		{
			ID: f.members[us[1].Address].id, Weight: 1, Cores: 4, Cache: selection.AssumedCached, Warm: 0.95, FetchFactor: 1,
			InFlight: 1, Assigned: 1, Jobs: 1, Age: forever,
			IdleCPU: 0.75, IdleIO: 0.5, Uptime: 3600 + 62.5, Left: forever,
		},
		{
			ID: f.members[upstreams(3)[2].Address].id, Weight: 1, Cores: 16, FetchFactor: 1, Age: forever,
			IdleCPU: 1, IdleIO: 1, Uptime: 2.5, Left: forever,
		},
	}
	require.Len(t, w.views, len(want))
	for i := range want {
		assert.Equal(t, want[i], w.views[i])
	}
	assert.InDelta(t, (12.0+1)/(16+4+16), w.job.Busy, 1e-9)
}

// TestViewsOfTheEligible: the views are those of the upstreams that may be
// picked, in the order of their addresses, whatever was seen before.
func TestViewsOfTheEligible(t *testing.T) {
	f, w := newFixture(t, "random", 8), &witness{}
	f.cfg.Policy = w
	us, now := upstreams(8), start
	rng := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		now = now.Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
		for i := range us {
			us[i].Draining = rng.IntN(3) == 0
			f.gates[us[i].Address].shut = rng.IntN(3) == 0
			if rng.IntN(4) == 0 {
				f.Report(now, us[i].Address, report(now, 1, float64(rng.IntN(130))))
			}
		}
		if rng.IntN(5) == 0 {
			for i := range us {
				us[i].Draining = true
			}
		}
		f.Set(now, us)
		tried := []string{us[rng.IntN(8)].Address, us[rng.IntN(8)].Address}

		shut := func(u Upstream) bool { return f.gates[u.Address].shut }
		panicking := 2*len(slices.DeleteFunc(slices.Clone(us), func(u Upstream) bool { return !shut(u) })) > len(us)
		allDrain := !slices.ContainsFunc(us, func(u Upstream) bool { return !u.Draining })
		var want []uint64
		for _, u := range us {
			m := f.members[u.Address]
			if (panicking || !shut(u)) && (allDrain || !u.Draining) && !slices.Contains(tried, u.Address) &&
				!(m.level <= 0 && now.Sub(m.report.At) <= 15*time.Second) {
				want = append(want, m.id)
			}
		}
		l, err := f.Claim(now, Request{}, tried)
		if len(want) == 0 {
			why := ErrAllTried
			if slices.ContainsFunc(us, func(u Upstream) bool {
				return (allDrain || !u.Draining) && !slices.Contains(tried, u.Address)
			}) {
				why = ErrNoneEligible
			}
			require.ErrorIs(t, err, why)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, panicking, l.Panic)
		var got []uint64
		for _, v := range w.views {
			got = append(got, v.ID)
		}
		require.Equal(t, want, got)
		l.Done(now, Gone)
	}
}
