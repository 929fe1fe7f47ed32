package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/lab/trace"
)

// Jobs that wait at a server that hangs are run elsewhere, once it is suspect.
func TestJobsLeaveAServerThatHangs(t *testing.T) {
	for _, moves := range []bool{false, true} {
		cfg := setup(t, "least-in-flight", "none", 4, 2)
		if !moves {
			cfg.Sidecars.Attempts = 1
		}
		cfg.Sidecars.Interval = 5 * time.Second
		cfg.Fleet.Fault = fault(hung, func(f *Fault) { f.At = 10 * time.Second })
		var jobs []trace.Job
		for i := range 120 {
			jobs = append(jobs, trace.Job{Offset: float64(i) / 4, Operators: 1, Timeouts: trace.Timeouts{Queue: 60}})
		}
		expired, moved := 0, 0
		for _, r := range played(t, cfg, jobs...) {
			if r.Outcome == Expired {
				expired++
				continue
			}
			require.Contains(t, []Outcome{Done, Overrun}, r.Outcome)
			if moved += r.Attempts - 1; r.Attempts > 1 {
				assert.Equal(t, Done, r.Outcome)
				assert.Less(t, r.Wait, 20*time.Second)
			}
		}
		assert.Equal(t, moves, expired == 0, "%d expired", expired)
		assert.Equal(t, moves, moved > 0, "%d moved", moved)
	}
}
