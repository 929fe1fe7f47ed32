package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/internal/pool"
)

func TestBoundsOfAJob(t *testing.T) {
	for _, c := range []struct {
		queue, evaluate, stream time.Duration
		firstByte, total        time.Duration // total 0 is no deadline
	}{
		{0, 0, 0, 300, 0},
		{5, 10, 0, 15, 15},
		{5, 10, 60, 15, 75},
		{0, 10, 0, 10, 10},
		{5, 0, 0, 305, 305},
		{0, 0, 60, 300, 360},
	} {
		f := newFixture(t, 1, nil)
		j := f.Begin(Request{
			Arrived: start, Queue: c.queue * time.Second, Evaluate: c.evaluate * time.Second, Stream: c.stream * time.Second,
		})
		assert.Equal(t, c.firstByte*time.Second, j.FirstByte)
		if c.total == 0 {
			assert.Zero(t, j.Deadline)
			continue
		}
		assert.Equal(t, start.Add(c.total*time.Second), j.Deadline)
	}
}

// An attempt has the job's time for an answer to begin, or what the deadline
// leaves of it; less than half of it says nothing of the upstream.
func TestTimeOfAnAttempt(t *testing.T) {
	f := newFixture(t, 1, nil)
	j := f.Begin(Request{Arrived: start, Queue: 4 * time.Second, Evaluate: 6 * time.Second, Stream: 10 * time.Second})
	for _, c := range []struct {
		at, left time.Duration
		last     bool
		outcome  pool.Outcome
	}{
		{0, 10, false, pool.TimedOut}, {10, 10, false, pool.TimedOut}, {12, 8, true, pool.TimedOut},
		{15, 5, true, pool.TimedOut}, {16, 4, true, pool.Gone}, {21, -1, true, pool.Gone},
	} {
		left, last := j.TimeLeft(start.Add(c.at * time.Second))
		assert.Equal(t, c.left*time.Second, left)
		assert.Equal(t, c.last, last)
		assert.Equal(t, c.outcome, j.TimedOut(left))
	}
	left, last := f.Begin(Request{Arrived: start}).TimeLeft(start.Add(time.Hour))
	assert.Equal(t, 5*time.Minute, left)
	assert.False(t, last, "a job without timeouts has no deadline")
}
