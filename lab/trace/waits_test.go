package trace

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// job is an entry of a job that came to upstream x, took so long and was answered.
func job(project Project, at, took float64) entry {
	return entry{upstream: "x", job: Job{Project: project, Offset: at}, end: at + took, took: took, most: took, answered: true}
}

// estimated are the costs if so many jobs run at one time.
func estimated(cores int, all ...entry) []string {
	return costsOf((&Logs{entries: slices.Clone(all)}).Estimate(cores, 0))
}

func TestCostsWhereWaitsAndFetchesAreTold(t *testing.T) {
	waited, cold, other := job("a", 0, 5), job("a", 6, 4), job("b", 20, 4)
	waited.most, cold.most, cold.cold, cold.job.Load = 2, 3.5, true, 1.5
	refused := entry{job: Job{Project: "a", Offset: 11}, end: 11}
	assert.Equal(t, []string{"1.5 2", "1.5 2", "1.5 2", "1.5 4"}, estimated(4, waited, cold, refused, other),
		"one that was refused costs what its project's others do, and a project that nobody saw fetched what all do")
}

// One job runs at a time.
func TestWaitsAreRebuilt(t *testing.T) {
	miss := job("a", 0, 5)
	miss.cold = true
	all := []entry{miss, job("a", 6, 2), job("a", 7, 3), job("a", 7.5, 4.5), job("a", 8, 1), job("b", 20, 1)}
	assert.Equal(t, []string{"3 2", "3 2", "3 2", "3 2", "3 1", "3 1"}, estimated(1, all...), "the last job of a ended before its turn")
	assert.Equal(t, []string{"3 2", "3 2", "3 3", "3 4.5", "3 1", "3 1"}, estimated(9, all...), "nobody waited")
	assert.Equal(t, []string{"3 2", "3 2", "3 2"}, estimated(2, miss, job("a", 1, 4), job("a", 9, 2)), "the second one waited for the fetch")
}
