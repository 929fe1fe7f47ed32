package job_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"pilotfish/internal/job"
)

func TestOutcomesHaveDistinctWords(t *testing.T) {
	seen := map[string]bool{}
	for o := range job.Outcomes {
		word := job.Outcome(o).String()
		assert.Regexp(t, `^[a-z_]+$`, word)
		assert.False(t, seen[word], word)
		seen[word] = true
	}
	for s := range job.Sheddings {
		word := job.Shedding(s).String()
		assert.Regexp(t, `^[a-z_]+$`, word)
		assert.False(t, seen[word], word)
		seen[word] = true
	}
}

func TestOnlyRefusedJobsWereNotTried(t *testing.T) {
	tried := map[job.Outcome]bool{
		job.Answered: true, job.Failed: true, job.Truncated: true,
		job.NoAnswer: true, job.Deadline: true, job.Gone: true,
	}
	for o := range job.Outcome(job.Outcomes) {
		assert.Equal(t, tried[o], o.Tried(), o.String())
	}
}
