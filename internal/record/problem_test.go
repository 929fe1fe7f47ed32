package record

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/dispatch"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

func TestEveryErrorHasItsStatus(t *testing.T) {
	for _, tc := range []struct {
		err     error
		status  int
		reason  string
		outcome intake.Outcome
	}{
		{ErrMalformed, 400, "malformed-job", intake.Rejected},
		{&Refusal{Status: 405, Reason: "method-refused", Title: "x", Text: "y"}, 405, "method-refused", intake.Rejected},
		{intake.ErrTooLarge, 413, "body-too-large", intake.TooLarge},
		{ErrGone, 499, "submitter-gone", intake.Gone},
		{ErrNoAnswer, 502, "no-answer", intake.NoAnswer},
		{pool.ErrAllTried, 502, "no-answer", intake.NoAnswer},
		{dispatch.ErrFull, 503, "queue-full", intake.Shed},
		{dispatch.ErrWaited, 503, "none-eligible", intake.Shed},
		{pool.ErrEmpty, 503, "none-eligible", intake.Shed},
		{pool.ErrNoneEligible, 503, "none-eligible", intake.Shed},
		{ErrShutdown, 503, "shutting-down", intake.Shed},
		{ErrDeadline, 504, "deadline", intake.Deadline},
		{fmt.Errorf("%w: up:1: %w", ErrNoAnswer, ErrFirstByte), 504, "deadline", intake.Deadline},
		{assert.AnError, 500, "internal", intake.Broken},
	} {
		p := ProblemOf(fmt.Errorf("more about it: %w", tc.err))
		assert.Equal(t, tc.status, p.Status, tc.err)
		assert.Equal(t, tc.reason, p.Reason)
		assert.Equal(t, "urn:pilotfish:problem:"+tc.reason, p.Type)
		assert.Equal(t, tc.outcome, p.Outcome)
		assert.Contains(t, p.Detail, tc.err.Error())
		assert.NotEmpty(t, p.Title)
	}
}
