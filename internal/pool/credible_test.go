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

func TestImpossibleFiguresAreUnknown(t *testing.T) {
	good := report(start, 3, 2)
	good.CoresBusy, good.Completed, good.Wait = 3, 100, 1
	same, known, wrong := good.sanitize()
	assert.Equal(t, good, same)
	assert.True(t, known)
	assert.Empty(t, wrong)

	for _, absurd := range []float64{math.Inf(1), 1e308} {
		r := good
		r.CoresBusy, r.Completed, r.Begun, r.Wait = absurd, absurd, absurd, absurd
		r.Cores = math.MaxInt
		sane, known, wrong := r.sanitize()
		assert.True(t, known, "the load is good")
		assert.Equal(t, []float64{0, -1, -1, 0}, []float64{float64(sane.Cores), sane.CoresBusy, sane.Completed, sane.Begun})
		assert.True(t, math.IsNaN(sane.Wait))
		assert.Contains(t, wrong, "9223372036854775807 cores, ")
		assert.Contains(t, wrong, " completed jobs, ")
	}
	for _, absurd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e308} {
		for _, counts := range []func(*Report) *float64{
			func(r *Report) *float64 { return &r.Running[selection.High] },
			func(r *Report) *float64 { return &r.Stalled[selection.Low] },
		} {
			r := good
			*counts(&r) = absurd
			_, known, wrong := r.sanitize()
			assert.False(t, known)
			assert.NotEmpty(t, wrong)
		}
	}
}

// A report with an impossible load leaves the load of the last one, until that is too old.
func TestImpossibleLoadsAreIgnored(t *testing.T) {
	f, address := newFixture(t, "random", 1), upstreams(1)[0].Address
	f.Report(start, address, report(start, 10, 4))
	r := report(start.Add(time.Second), 1, math.NaN(), 9)
	f.Report(r.At, address, r)
	s := f.state(r.At, address)
	assert.Equal(t, []float64{10, 4, 1}, []float64{s.Running, s.Stalled, s.ReportAge})
	assert.Equal(t, 1, s.Cached, "the rest counts")
	assert.Equal(t, "[NaN 0] stalled joblets", s.Implausible)
	f.Report(start.Add(2*time.Second), address, report(start.Add(2*time.Second), 1, 0))
	assert.Empty(t, f.state(start, address).Implausible)
}

func TestCoresAreComparedWithOthers(t *testing.T) {
	f, us := newFixture(t, "random", 3), upstreams(3)
	reportCores := func(i, cores int) {
		r := report(start.Add(time.Second), 0, 0)
		r.Cores = cores
		f.members[us[i].Address].suspicion.Joined()
		f.Report(r.At, us[i].Address, r)
	}
	reportCores(0, 4000)
	assert.Equal(t, 4000, f.state(start, us[0].Address).Cores, "there is nothing to compare it with")
	reportCores(1, 4)
	s := f.state(start, us[0].Address)
	assert.Zero(t, s.Cores)
	assert.Equal(t, "4000 cores, more than 16 times as many as others", s.Implausible)
	assert.Equal(t, 16.0, f.members[us[0].Address].cores(&f.norms), "the default")
	assert.Equal(t, 4, f.state(start, us[1].Address).Cores)
	us[0].Cores = 8
	f.Set(start, us)
	assert.Equal(t, 8, f.state(start, us[0].Address).Cores, "discovery is believed")
	us[0].Cores = 4000
	f.Set(start, us)
	assert.Zero(t, f.state(start, us[0].Address).Cores, "unless it has the same figure")
	reportCores(0, 64)
	s = f.state(start, us[0].Address)
	assert.Equal(t, 64, s.Cores)
	assert.Empty(t, s.Implausible)
}

// The pace of an upstream that reports far more completed jobs than others counts as unknown.
func TestPacesAreComparedWithOthers(t *testing.T) {
	f, us := newFixture(t, "random", 3), upstreams(3)
	for i := range 4 {
		now := start.Add(time.Duration(i) * 5 * time.Second)
		for n, u := range us {
			r := report(now, 4, 0)
			r.CoresBusy, r.Completed = 4, float64(20*i)
			if n == 1 {
				r.Completed = float64(41_000 * i)
			}
			f.Report(now, u.Address, r)
		}
	}
	assert.InDelta(t, 16, f.state(start, us[0].Address).Rate, 1e-9)
	s := f.state(start, us[1].Address)
	assert.Zero(t, s.Rate)
	assert.Equal(t, "2.05e+03 jobs per second and core, far more than others", s.Implausible)
}

// absurdReport is a report with random figures, possible or not.
func absurdReport(rng *rand.Rand, at time.Time) Report {
	figure := func() float64 {
		odd := []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e308, -1e308, 1e9, 5e-324, 4000}
		if i := rng.IntN(2 * len(odd)); i < len(odd) {
			return odd[i]
		}
		return math.Float64frombits(rng.Uint64())
	}
	return Report{
		At: at, Running: [2]float64{figure(), figure()}, Stalled: [2]float64{figure(), figure()},
		Cores: []int{0, -5, 4000, 1e9, math.MaxInt, math.MinInt, 3}[rng.IntN(7)], CoresBusy: figure(), Completed: figure(),
		Wait: figure(), Cached: projects{rng.Uint64N(50): true},
	}
}

// Whatever one upstream reports, the views of the others are as if it reported nothing, and its own are within bounds. The
// others have equal sizes.
func TestAbsurdReportsHurtOnlyTheirSender(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		us := upstreams(5)
		liar := us[4].Address // the witness takes the first
		lied, quiet := newFixture(t, "random", 5), newFixture(t, "random", 5)
		all := []*fixture{lied, quiet}
		seen := []*witness{{}, {}}
		for i, f := range all {
			f.cfg.Policy = seen[i]
		}
		now := start
		for step := range 60 {
			now = now.Add(time.Duration(rng.IntN(2000)) * time.Millisecond)
			from := us[rng.IntN(4)].Address
			r := report(now, float64(rng.IntN(20)), float64(rng.IntN(20)), rng.Uint64N(50))
			r.Cores, r.CoresBusy, r.Completed = 4+rng.IntN(28), 3, 6*now.Sub(start).Seconds()
			absurd := absurdReport(rng, now)
			lied.Report(now, liar, absurd)
			for i, f := range all {
				f.Report(now, from, r)
				f.must(now, Request{Project: 1 + uint64(step)%50}, nil)
				for _, v := range seen[i].views {
					for _, figure := range []float64{v.Jobs, v.Assigned, v.Rate} {
						require.True(t, figure >= 0 && figure <= 4*maxJobs, "%+v", v)
					}
					require.True(t, v.Cores >= 1 && v.Cores <= 32*maxTimes, "%+v", v)
				}
			}
			id := lied.members[liar].id
			other := func(views []selection.View) []selection.View {
				return slices.DeleteFunc(slices.Clone(views), func(v selection.View) bool { return v.ID == id })
			}
			require.Equal(t, other(seen[1].views), other(seen[0].views))
			seen[1].job.OneOffProbability, seen[0].job.OneOffProbability = 0, 0 // depends on the caches of all upstreams
			known := slices.DeleteFunc(slices.Clone(quiet.set), func(m *member) bool { return m.figures.rate.perCore() == 0 })
			if len(known) > 1 {
				require.InEpsilon(t, seen[1].job.Service, seen[0].job.Service, 1e-6, "the median is one of the others")
			}
			seen[1].job.Service, seen[0].job.Service = 0, 0
			require.Equal(t, seen[1].job, seen[0].job)
		}
	}
}

// claimed is a listing that contains every project and has that length.
type claimed int

func (claimed) Contains(uint64) bool { return true }
func (claimed) Bytes(uint64) float64 { return 0 }
func (n claimed) Len() int           { return int(n) }

func TestListingsThatAreTooLong(t *testing.T) {
	for name, c := range map[string]struct {
		others []int
		n      int
		want   string
	}{
		"longer than the others": {[]int{900, 1000}, 17_000, "17000 cached projects, more than 16 times as many as others"},
		"as long as another":     {[]int{10, 1100}, 17_000, ""},
		"few":                    {[]int{1, 2}, 9000, ""},
		"alone":                  {nil, 1_000_000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, us := newFixture(t, "expected", 3), upstreams(3)
			for i, n := range c.others {
				r := report(start, 0, 0)
				r.Cached = claimed(n)
				f.Report(start, us[1+i].Address, r)
			}
			r := report(start, 0, math.NaN())
			r.Cached = claimed(c.n)
			f.Report(start, us[0].Address, r)
			want := "[NaN 0] stalled joblets"
			if c.want != "" {
				want += ", " + c.want
			}
			assert.Equal(t, want, f.state(start, us[0].Address).Implausible)
			assert.Equal(t, c.want == "", f.cache(f.members[us[0].Address], 5, start) == selection.Cached)
			f.Report(start.Add(time.Second), us[0].Address, report(start.Add(time.Second), 0, 0, 5))
			assert.Empty(t, f.state(start, us[0].Address).Implausible, "the next one is another matter")
		})
	}
}

// An upstream that fails jobs at once does not seem quick.
func TestFailuresDoNotCountAsPace(t *testing.T) {
	f, address := newFixture(t, "random", 1), upstreams(1)[0].Address
	for i := range 10 {
		now := start.Add(time.Duration(i) * 5 * time.Second)
		f.Report(now, address, Report{At: now, Cores: 4, CoresBusy: 1, Completed: float64(1000*i + i), Failed: float64(1000 * i)})
	}
	assert.InDelta(t, 0.2, f.members[address].figures.rate.perCore(), 1e-9, "one job in five seconds on one core")
	assert.InDelta(t, 5, f.norms.service, 1e-9)
}

// An upstream that is busy and completes nothing for two days is slow, and its wait stays finite.
func TestAPaceFadesToAMinimum(t *testing.T) {
	f, address := newFixture(t, "random", 1), upstreams(1)[0].Address
	for minute := range 48 * 60 {
		now := start.Add(time.Duration(minute) * time.Minute)
		f.Report(now, address, Report{At: now, Cores: 4, CoresBusy: 4, Completed: float64(min(minute, 5))})
	}
	assert.InDelta(t, leastDone/(4*60), f.members[address].figures.rate.perCore(), leastDone/60)
}
