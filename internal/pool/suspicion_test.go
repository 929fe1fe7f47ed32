package pool

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/health"
)

// errSilent is the error of a poll whose response is no report, errHung that of one without a response.
var (
	errSilent = fmt.Errorf("upstream a:1: metrics: %w", errors.New("status 404 Not Found"))
	errHung   = fmt.Errorf("upstream a:1: metrics: %w", health.ErrNoResponse)
)

// claims claims upstreams for n jobs at one instant, and returns the number of jobs by address and the assignments.
func (f *fixture) claims(t *testing.T, now time.Time, n int) (got map[string]int, open []*Assignment) {
	t.Helper()
	got = map[string]int{}
	for range n {
		a := f.must(now, Request{}, nil)
		got[a.Address]++
		open = append(open, a)
	}
	return got, open
}

func (f *fixture) state(now time.Time, address string) State {
	for _, s := range f.States(now) {
		if s.Address == address {
			return s
		}
	}
	panic("no upstream " + address)
}

// allIdle lets every upstream report that it has no jobs.
func (f *fixture) allIdle(now time.Time) {
	for _, m := range f.set {
		f.Report(now, m.Address, report(now, 0, 0))
	}
}

// suspect makes an upstream that has reported a suspect.
func (f *fixture) suspect(now time.Time, address string) {
	f.ReportFailed(now, address, errSilent)
	f.ReportFailed(now, address, errSilent)
}

// An upstream that has reported before is suspect, and gets no jobs, from its second failed poll in a row until its next
// report.
func TestTwoFailedReportsMakeASuspect(t *testing.T) {
	f, us, now := newFixture(t, "least-in-flight", 4), upstreams(4), start
	sick := us[2].Address
	f.ReportFailed(now, sick, errSilent)
	f.ReportFailed(now, sick, errSilent)
	f.ReportFailed(now, "10.9.9.9:1", errSilent) // unknown: nothing happens
	assert.Empty(t, f.state(now, sick).Suspect, "it never reported, so failed polls do not count")

	f.allIdle(now)
	now = now.Add(time.Second)
	f.ReportFailed(now, sick, errSilent)
	assert.Empty(t, f.state(now, sick).Suspect, "one failed poll makes no suspect")
	now = now.Add(time.Second)
	f.ReportFailed(now, sick, errSilent)
	s := f.state(now, sick)
	assert.Equal(t, "2 polls in a row failed, and no response began since: status 404 Not Found", s.Suspect)
	assert.Equal(t, "suspect: "+s.Suspect, s.Why)
	assert.False(t, s.Eligible)
	got, _ := f.claims(t, now, 60)
	assert.Len(t, got, 3)
	assert.NotContains(t, got, sick)

	now = now.Add(time.Second)
	f.Report(now, sick, report(now, 0, 0))
	assert.True(t, f.state(now, sick).Eligible, "a good report clears it")
	got, _ = f.claims(t, now, 20)
	assert.Equal(t, map[string]int{sick: 20}, got)
}

// A suspect that refuses a job for load has responded.
func TestARefusalForLoadClearsASuspect(t *testing.T) {
	f, sick := newFixture(t, "least-in-flight", 2), upstreams(2)[0].Address
	f.Report(start, sick, report(start, 0, 0))
	a := f.must(start, Request{Among: places([]string{sick})}, nil)
	f.suspect(start.Add(time.Second), sick)
	require.NotEmpty(t, f.state(start, sick).Suspect)
	a.Done(start.Add(2*time.Second), NotStarted)
	assert.Empty(t, f.state(start, sick).Suspect)
}

// serve lets all upstreams except one respond to n jobs, and returns the number of jobs that the other one got.
func (f *fixture) serve(t *testing.T, now time.Time, n int, sick string) (went int) {
	t.Helper()
	for range n {
		a := f.must(now, Request{}, nil)
		if a.Address == sick {
			went++
			continue
		}
		answer(a, now)
	}
	return went
}

// An upstream that does not report is judged by the responses that it owes.
func TestOwedResponsesMakeASuspect(t *testing.T) {
	f, now := newFixture(t, "random", 5), start
	sick := upstreams(5)[1].Address
	f.serve(t, now, 100, "")
	went := f.serve(t, now, 1000, sick)
	assert.Less(t, went, 6)
	assert.GreaterOrEqual(t, went, 2)
	assert.Contains(t, f.state(now, sick).Suspect, fmt.Sprintf("none of its %d open jobs got a response, while", went))
}

// Suspicion is ignored while more than half of the upstreams are suspect: the fault is more likely this sidecar's.
func TestSuspicionOfMostIsIgnored(t *testing.T) {
	f, us, now := newFixture(t, "least-in-flight", 4), upstreams(4), start
	for i, u := range us {
		f.Report(now, u.Address, report(now, 0, 0))
		f.ReportFailed(now.Add(time.Second), u.Address, errSilent)
		f.ReportFailed(now.Add(time.Second), u.Address, errSilent)
		got, open := f.claims(t, now.Add(time.Second), 40)
		if i < 2 {
			assert.Len(t, got, 3-i, "%d suspects", i+1)
		} else {
			assert.Len(t, got, 4, "%d suspects", i+1)
			assert.True(t, f.state(now, u.Address).Eligible)
		}
		for _, a := range open {
			a.Cancel(now)
		}
	}
}

// A suspect gets a job that has no other upstream, but not one that can wait for an upstream that is overloaded.
func TestASuspectIsTheLastResort(t *testing.T) {
	f, us, now := newFixture(t, "least-in-flight", 3), upstreams(3), start
	sick := us[0].Address
	f.allIdle(now)
	f.ReportFailed(now, sick, errSilent)
	f.ReportFailed(now.Add(time.Second), sick, errSilent)
	now = now.Add(time.Second)

	a := f.must(now, Request{}, []string{us[1].Address})
	require.Equal(t, us[2].Address, a.Address)
	a.Done(now, NotStarted)
	a = f.must(now, Request{}, []string{us[1].Address})
	assert.Equal(t, us[2].Address, a.Address, "one that refused for load comes first")
	a = f.must(now, Request{}, []string{us[1].Address, us[2].Address})
	assert.Equal(t, sick, a.Address)
	f.shut(us[1].Address, true)
	f.shut(us[2].Address, true)
	a = f.must(now, Request{}, nil)
	assert.Equal(t, sick, a.Address, "the others failed for certain")
	assert.False(t, a.Panic)

	f.shut(us[1].Address, false)
	f.Report(now, us[1].Address, report(now, 0, 500))
	_, err := f.Claim(now, Request{}, nil)
	assert.ErrorIs(t, err, ErrNoneEligible)
}

// open is a job whose response begins at an instant.
type open struct {
	responds time.Time
	a        *Assignment
}

// Healthy upstreams that do not report and have long jobs among short ones are hardly ever suspect. The durations have a
// median of 0.26 s and a 99th percentile of 168 s, and depend on the job or on its project.
func TestSlowJobsMakeNoSuspect(t *testing.T) {
	const jobs, median, spread = 10_000, 0.26, 2.78
	for _, upstreams := range []int{3, 14} {
		for _, rate := range []float64{3, 12.5, 100} {
			for _, own := range []float64{1, 0.3} { // share of the variance that depends on the job, not on its project
				f, now := newFixture(t, "bounded-hash", upstreams), start
				rng := rand.New(rand.NewPCG(1, 1))
				projects := make([]float64, 1000)
				for i := range projects {
					projects[i] = rng.NormFloat64()
				}
				var all []open // by the instant of the response
				suspects := 0
				for range jobs {
					now = now.Add(time.Duration(rng.ExpFloat64() / rate * float64(time.Second)))
					for ; len(all) > 0 && all[0].responds.Before(now); all = all[1:] {
						answer(all[0].a, all[0].responds)
					}
					project := int(math.Pow(float64(len(projects)), rng.Float64())) - 1
					a := f.must(now, Request{Project: uint64(project + 1)}, nil)
					z := math.Sqrt(1-own)*projects[project] + math.Sqrt(own)*rng.NormFloat64()
					responds := now.Add(time.Duration(median * math.Exp(spread*z) * float64(time.Second)))
					i, _ := slices.BinarySearchFunc(all, responds, func(o open, t time.Time) int { return o.responds.Compare(t) })
					all = slices.Insert(all, i, open{responds, a})
					for _, s := range f.set {
						if s.suspicion.Why() != "" {
							suspects++
							break
						}
					}
				}
				assert.LessOrEqual(t, suspects, jobs*3/100, "%d upstreams, %v jobs/s, %.1f of the variance the jobs' own", upstreams, rate, own)
				t.Logf("%d upstreams, %v jobs/s, %.1f of the variance the jobs' own: an upstream is suspect for %.2f %% of the jobs",
					upstreams, rate, own, 100*float64(suspects)/jobs)
			}
		}
	}
}
