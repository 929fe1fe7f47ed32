package workload

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/pkg/trace"
)

// seen is a job of a project that was answered.
func seen(project trace.Project, cache string, wait *float64, ttfb, ttlb float64) trace.Job {
	return trace.Job{Project: project, Measured: &trace.Measured{Cache: cache, Wait: wait, TTFB: &ttfb, TTLB: &ttlb}}
}

type cost struct{ load, operators, output float64 }

func costsOf(jobs []trace.Job) (list []cost) {
	EstimateCosts(jobs)
	for _, j := range jobs {
		list = append(list, cost{j.Load, j.Operators, j.Output})
	}
	return list
}

func TestEstimateCostsWhereWaitsAndFetchesAreTold(t *testing.T) {
	retried := seen("a", "cached", new(1.0), 8, 9)
	retried.Measured.Attempts = []trace.Attempt{{Start: 0, End: 4}, {Start: 5, End: 9}}
	cold := seen("a", "none", new(0.5), 4, 5)
	cold.Load = 1.5
	assert.Equal(t, []cost{{1.5, 2, 1}, {1.5, 2, 1}, {1.5, 2, 1}, {1.5, 2, 1}, {1.5, 4, 3}}, costsOf([]trace.Job{
		seen("a", "cached", new(3.0), 5, 6),
		retried,
		cold,
		{Project: "a", Measured: &trace.Measured{Outcome: "shed"}}, // as the project's others
		seen("b", "cached", new(0.0), 4, 7),                        // nobody saw it fetched: as all
	}))
}

func TestEstimateCostsWhereNothingIsTold(t *testing.T) {
	var jobs []trace.Job
	for _, ttfb := range []float64{1, 1, 2, 9, 30} { // with more and more waiting
		jobs = append(jobs, seen("a", "cached", nil, ttfb, ttfb+0.5))
	}
	jobs = append(jobs, seen("a", "none", nil, 5, 5.5))
	assert.Equal(t, []cost{{3, 1, 0.5}, {3, 1, 0.5}, {3, 1, 0.5}, {3, 1, 0.5}, {3, 1, 0.5}, {3, 1, 0.5}}, costsOf(jobs))
}

func TestEstimateCostsLeavesWhatIsKnown(t *testing.T) {
	known := seen("a", "cached", nil, 10, 20)
	known.Operators = 0.25
	prefetch := trace.Job{Kind: trace.Prefetch, Load: 2, Measured: &trace.Measured{}}
	generated := trace.Job{Project: "c"}
	assert.Equal(t, []cost{{0, 0.25, 0}, {2, 0, 0}, {}, {0, 3, 1}}, costsOf([]trace.Job{
		known, prefetch, generated, seen("", "", new(0.0), 3, 4),
	}))
}
