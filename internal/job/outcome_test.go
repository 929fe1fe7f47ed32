package job_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"pilotfish/internal/job"
	"pilotfish/internal/pool"
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

func TestJobsAndAttemptsThatEndAlikeShareTheWord(t *testing.T) {
	for o, attempt := range map[job.Outcome]pool.Outcome{
		job.Answered:  pool.Answered,
		job.Failed:    pool.Failed,
		job.Truncated: pool.Truncated,
		job.NoAnswer:  pool.NoAnswer,
		job.Gone:      pool.Gone,
	} {
		assert.Equal(t, attempt.String(), o.String())
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
