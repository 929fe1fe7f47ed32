package dispatch

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/overload"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/pkg/selection"
)

// counting is a policy that counts the views it gets.
type counting struct {
	selection.Policy
	views *int
}

func (c counting) Local() {}

func (c counting) Pick(j selection.Job, views []selection.View, rng *rand.Rand) int {
	*c.views += len(views)
	return c.Policy.Pick(j, views, rng)
}

// refusing is a dispatcher over n upstreams that all refuse connections.
func refusing(t testing.TB, n int) (f *fixture, views *int) {
	views = new(int)
	return newFixtureOver(t, n, pool.Settings{
		Policy:   counting{selection.DefaultExpected(), views},
		Detector: func() overload.Detector { return func(overload.Sample) overload.Level { return 1 } }, Interval: 5 * time.Second,
	}, nil), views
}

// refuse lets every upstream refuse a job, each after some time, until it pauses or ends.
func (f *fixture) refuse(now time.Time, j *Job, after time.Duration) (refusals int, end time.Time, next Next) {
	been := map[string]bool{}
	for next.Again = true; next.Again && next.Pause == 0; refusals++ {
		g := f.claim(now, j)
		require.False(f.t, been[g.Assignment.Address], "it has been there")
		been[g.Assignment.Address] = true
		now = now.Add(after)
		next = f.fail(now, g, Failure{Outcome: pool.Refused})
	}
	return refusals, now, next
}

// The work for a job that every upstream refuses is linear in the upstreams.
func TestWorkForAJobThatAllRefuse(t *testing.T) {
	for _, n := range []int{14, 200, 1000, 4000} {
		f, views := refusing(t, n)
		refusals, _, next := f.refuse(start, f.Begin(Request{Project: 7}), 0)
		assert.Equal(t, n, refusals, "each is tried")
		assert.Positive(t, next.Pause, "before all are tried again")
		assert.Less(t, *views, 40*n, "%d upstreams", n)
	}
}

// A job ends when its queue timeout has passed, however many upstreams refuse it.
func TestRefusalsEndInTime(t *testing.T) {
	for own, want := range map[time.Duration]int{0: 1001, 2 * time.Second: 201} {
		f, _ := refusing(t, 3000)
		refusals, end, next := f.refuse(start, f.Begin(Request{Queue: own, Arrived: start}), 10*time.Millisecond)
		assert.Equal(t, []any{want, Next{}}, []any{refusals, next})
		assert.Equal(t, start.Add(time.Duration(want)*10*time.Millisecond), end)
	}
}

// While all breakers are open, a job pauses after some refusals: all upstreams have refused other jobs.
func TestRefusalsWhileAllBreakersAreOpen(t *testing.T) {
	for _, n := range []int{20, 200} {
		f, _ := refusing(t, n)
		for _, u := range f.Pool().States(start) {
			for range 2 {
				f.Pool().Checked(start, u.Address, assert.AnError)
			}
		}
		refusals, _, next := f.refuse(start, f.Begin(Request{}), 0)
		assert.Equal(t, min(n, maxPanicRefusals), refusals)
		assert.Positive(t, next.Pause)
	}
}

// BenchmarkAtLimit measures an event while many jobs wait because their projects are at their limits.
func BenchmarkAtLimit(b *testing.B) {
	for _, n := range []struct{ jobs, projects int }{{1, 1}, {10_000, 1}, {10_000, 100}} {
		b.Run(fmt.Sprintf("%d jobs of %d projects", n.jobs, n.projects), func(b *testing.B) {
			f := newFixture(b, 14, func(c *Config) { c.Projects.Limit, c.Queue.Jobs = 1, 20_000 })
			for i := range n.projects {
				_, granted := f.Arrive(start, f.Begin(Request{Project: uint64(i + 1)}))
				require.True(b, granted)
			}
			for i := range n.jobs {
				f.wait(start, Request{Project: uint64(i%n.projects + 1), Queue: time.Hour})
			}
			for b.Loop() {
				require.Empty(b, f.Serve(start))
			}
		})
	}
}

// BenchmarkAllRefuse measures one round of a job that every upstream refuses.
func BenchmarkAllRefuse(b *testing.B) {
	for _, n := range []int{14, 1000, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			f, _ := refusing(b, n)
			for b.Loop() {
				f.refuse(start, f.Begin(Request{Project: 7}), 0)
			}
		})
	}
}
