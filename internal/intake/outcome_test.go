package intake_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/intake"
)

func TestOutcomesHaveDistinctWords(t *testing.T) {
	seen := map[string]bool{}
	for o := range intake.Outcomes {
		word := intake.Outcome(o).String()
		assert.Regexp(t, `^[a-z_]+$`, word)
		assert.False(t, seen[word], word)
		seen[word] = true
	}
	for s := range intake.Sheddings {
		word := intake.Shedding(s).String()
		assert.Regexp(t, `^[a-z_]+$`, word)
		assert.False(t, seen[word], word)
		seen[word] = true
	}
	for c := range intake.Completenesses {
		word := intake.Completeness(c).String()
		assert.Regexp(t, `^[a-z_]+$`, word)
		assert.False(t, seen[word], word)
		seen[word] = true
	}
	for r := range intake.Readings {
		word := intake.Reading(r).String()
		assert.Regexp(t, `^[a-z_]+$`, word)
		assert.False(t, seen[word], word)
		seen[word] = true
	}
}

func TestOnlyRefusedJobsWereNotTried(t *testing.T) {
	tried := map[intake.Outcome]bool{
		intake.Answered: true, intake.Failed: true, intake.Truncated: true,
		intake.NoAnswer: true, intake.Deadline: true, intake.Gone: true,
	}
	for o := range intake.Outcome(intake.Outcomes) {
		assert.Equal(t, tried[o], o.Tried(), o.String())
	}
}
