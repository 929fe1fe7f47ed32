package proxy

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
		{errMalformed, 400, "malformed-job", intake.Rejected},
		{errFraming, 400, "malformed-body", intake.Rejected},
		{errTarget, 400, "bad-target", intake.Rejected},
		{errCrossSite, 403, "cross-site", intake.Rejected},
		{errForeignHost, 403, "foreign-host", intake.Rejected},
		{errMethod, 405, "method-refused", intake.Rejected},
		{errSlow, 408, "slow-body", intake.Rejected},
		{intake.ErrTooLarge, 413, "body-too-large", intake.TooLarge},
		{errGone, 499, "submitter-gone", intake.Gone},
		{errUpgrade, 501, "upgrade-refused", intake.Rejected},
		{errNoAnswer, 502, "no-answer", intake.NoAnswer},
		{pool.ErrAllTried, 502, "no-answer", intake.NoAnswer},
		{dispatch.ErrFull, 503, "queue-full", intake.Shed},
		{dispatch.ErrWaited, 503, "none-eligible", intake.Shed},
		{pool.ErrEmpty, 503, "none-eligible", intake.Shed},
		{pool.ErrNoneEligible, 503, "none-eligible", intake.Shed},
		{ErrShutdown, 503, "shutting-down", intake.Shed},
		{errDeadline, 504, "deadline", intake.Deadline},
		{fmt.Errorf("%w: up:1: %w", errNoAnswer, errFirstByte), 504, "deadline", intake.Deadline},
		{assert.AnError, 500, "internal", intake.Broken},
	} {
		p := problemOf(fmt.Errorf("more about it: %w", tc.err))
		assert.Equal(t, tc.status, p.Status, tc.err)
		assert.Equal(t, tc.reason, p.reason)
		assert.Equal(t, "urn:pilotfish:problem:"+tc.reason, p.Type)
		assert.Equal(t, tc.outcome, p.outcome)
		assert.Contains(t, p.Detail, tc.err.Error())
		assert.NotEmpty(t, p.Title)
	}
}
