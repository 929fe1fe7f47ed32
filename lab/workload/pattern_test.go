package workload

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/stats"
	"example.org/pilotfish/lab/trace"
	"example.org/pilotfish/pkg/selection"
)

func TestConfigRefusesInvalidValues(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`workload: pattern: unknown "poisson": it is schedules, steady, sources or bursts`:  func(c *Config) { c.Pattern = "poisson" },
		"workload: projects: 5 given, but pattern schedules makes as many as its jobs need": func(c *Config) { c.Projects = 5 },
		"workload: projects: -5 is not between 1 and 1000000":                               func(c *Config) { c.Pattern, c.Projects = steady, -5 },
		"workload: jobs: -1 must be at least 1":                                             func(c *Config) { c.Jobs = -1 },
		"workload: submitters: -1 must be at least 1":                                       func(c *Config) { c.Submitters = -1 },
		"workload: start_hour: 24 is not between 0 and 23":                                  func(c *Config) { c.StartHour = 24 },
		"workload: high_share: 1.5 is not between 0 and 1":                                  func(c *Config) { c.HighShare = 1.5 },
		"workload: high_share: NaN is not between 0 and 1":                                  func(c *Config) { c.HighShare = math.NaN() },
		"workload: duration: -1 is not between 0 and 1e+09":                                 func(c *Config) { c.Duration = -1 },
		"workload: bursts.size: only the pattern bursts has bursts":                         func(c *Config) { c.Bursts.Size = 1 },
		"workload: bursts.size: 0 is not between 1 and 10":                                  func(c *Config) { c.Pattern = bursts },
		"workload: bursts.every: a burst of 5 jobs with gaps of 1 s has not ended after 3 s": func(c *Config) {
			c.Pattern, c.Bursts = bursts, Bursts{Size: 5, Every: 3, Gap: 1}
		},
		"workload: bursts.size: the last of 10 jobs is sent after 90000 s, and the duration is 86400": func(c *Config) {
			c.Pattern, c.Bursts = bursts, Bursts{Size: 10, Gap: 10_000}
		},
		"workload: hot.every: 0 must be positive":       func(c *Config) { c.Hot.Projects = 1 },
		"workload: hot.share: 2 is not between 0 and 1": func(c *Config) { c.Hot.Share = 2 },
	} {
		cfg := config(func(c *Config) { c.Jobs = 10 })
		change(&cfg)
		_, err := New(cfg)
		assert.EqualError(t, err, want)
	}
}

// The two loads of Turner's thesis: one burst with a second between its jobs, and several bursts with
// pauses.
func TestBursts(t *testing.T) {
	sent := func(b Bursts, jobs int) (at []float64) {
		for _, job := range all(t, config(func(c *Config) { c.Pattern, c.Bursts, c.Jobs = bursts, b, jobs })) {
			at = append(at, job.Offset)
		}
		return at
	}
	assert.Equal(t, []float64{0, 1, 2, 3, 4}, sent(Bursts{Size: 5, Gap: 1}, 5))
	assert.Equal(t, []float64{0, 0, 30, 30, 60}, sent(Bursts{Size: 2, Every: 30}, 5))
	job := all(t, config(func(c *Config) { c.Pattern, c.Bursts, c.Jobs = bursts, Bursts{Size: 1, Work: 50, Queue: 80}, 1 }))[0]
	assert.InDeltaSlice(t, []float64{0, 0, 5, 45, 80}, []float64{job.Load, job.SharedRules, job.Operators, job.Output, job.Timeouts.Queue}, 1e-9)
	assert.Equal(t, []float64{0, 2, 45, 47}, sent(Bursts{Size: 2, Every: 45, Gap: 2}, 4))
}

// Half of the jobs belong to one of two projects, and every 100 s to two others.
func TestHotProjectsChange(t *testing.T) {
	jobs := all(t, config(func(c *Config) {
		c.Pattern, c.Jobs, c.Duration, c.Projects, c.Hot = steady, 4000, 200, 100_000, Hot{Projects: 2, Share: 0.5, Every: 100}
	}))
	counts := [2]map[trace.Project]int{{}, {}}
	for _, job := range jobs {
		counts[int(job.Offset/100)][job.Project]++
	}
	for i := range counts {
		hot := 0
		for project, n := range counts[i] {
			if n > 200 {
				hot++
				require.Less(t, counts[1-i][project], 50, "it was hot before")
				assert.InDelta(t, 500, n, 100)
			}
		}
		assert.Equal(t, 2, hot)
	}
}

// TestCrowdIsAdded: the jobs of the pattern do not change, and those of the crowd belong to one
// project, within the crowd's time.
func TestCrowdIsAdded(t *testing.T) {
	plain := small(4)
	crowded := plain
	crowded.Crowd = Crowd{At: 1000, For: 60, Jobs: 3000, HighShare: 0.25}
	type sent struct {
		at      float64
		project trace.Project
		work    float64
	}
	usual := map[sent]int{}
	for _, job := range all(t, plain) {
		usual[sent{job.Offset, job.Project, job.Work()}]++
	}
	jobs := all(t, crowded)
	require.Len(t, jobs, plain.Jobs+3000)
	projects, high, more := map[trace.Project]int{}, 0, 0
	for _, job := range jobs {
		key := sent{job.Offset, job.Project, job.Work()}
		if usual[key] > 0 {
			usual[key]--
			continue
		}
		more++
		projects[job.Project]++
		assert.True(t, 1000 <= job.Offset && job.Offset <= 1060, "%v", job.Offset)
		if job.Priority == selection.High {
			high++
		}
	}
	assert.Equal(t, 3000, more)
	assert.Len(t, projects, 1)
	assert.InDelta(t, 750, high, 120)
}

// needing returns jobs that need data besides that of their project.
func needing(t *testing.T, jobs int, each bool, size float64) []trace.Job {
	t.Helper()
	return all(t, config(func(c *Config) {
		c.Pattern, c.Jobs, c.Projects, c.Needs = steady, jobs, 20, Needs{Count: 30, Most: 4, Each: each, Size: size}
	}))
}

// All jobs of a project need the same data, or each job draws its own; no data twice.
func TestNeeds(t *testing.T) {
	for _, each := range []bool{false, true} {
		of, differ, counts := map[trace.Project][]trace.Need{}, 0, make([]int, 5)
		for _, j := range needing(t, 2000, each, 0) {
			counts[len(j.Needs)]++
			names := map[trace.Project]bool{}
			for _, n := range j.Needs {
				names[n.Name] = true
				require.Positive(t, n.Bytes)
			}
			require.Len(t, names, len(j.Needs))
			if before, ok := of[j.Project]; ok && !reflect.DeepEqual(before, j.Needs) {
				differ++
			}
			of[j.Project] = j.Needs
		}
		assert.NotContains(t, counts, 0, "all numbers are drawn")
		assert.Equal(t, []bool{each, !each}, []bool{differ > 1000, differ == 0})
	}
}

// Size multiplies the cost of the additional data, and changes nothing else.
func TestSizeOfNeeds(t *testing.T) {
	want, large := needing(t, 200, true, 0), needing(t, 200, true, 5)
	for i := range want {
		for k := range want[i].Needs {
			want[i].Needs[k].Load *= 5
			want[i].Needs[k].Bytes *= 5
		}
	}
	assert.Equal(t, want, large)
}

// The number of jobs per minute varies far more than in a Poisson process, whose variance is the mean, and also over ten
// minutes.
func TestSourcesAreBursty(t *testing.T) {
	jobs := all(t, config(func(c *Config) { c.Seed, c.Pattern, c.Jobs, c.Duration, c.Projects = 3, sources, 50_000, 2*hour, 800 }))
	for minutes, times := range map[int]float64{1: 5, 10: 10} {
		counts := make([]float64, 120/minutes)
		for _, job := range jobs {
			counts[min(int(job.Offset/60)/minutes, len(counts)-1)]++
		}
		var jobsPer stats.Moments
		for _, n := range counts {
			jobsPer.Add(n)
		}
		assert.Greater(t, jobsPer.Variance(), times*50_000/float64(len(counts)), "%d minutes", minutes)
	}
}
