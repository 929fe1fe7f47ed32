package intake_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/intake"
)

func TestOnlyRefusedJobsWereNotTried(t *testing.T) {
	tried := map[intake.Outcome]bool{
		intake.Answered: true, intake.Failed: true, intake.Truncated: true,
		intake.NoAnswer: true, intake.Deadline: true, intake.Gone: true,
	}
	for o := range intake.Outcome(intake.Outcomes) {
		assert.Equal(t, tried[o], o.Tried(), o.String())
	}
}
