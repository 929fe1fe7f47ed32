package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestHear(t *testing.T) {
	s := Settings{Failures: 5, Open: 10 * time.Second, OpenMax: time.Minute}

	t.Run("one failure is enough where most jobs fail", func(t *testing.T) {
		f := newFixture(t, s)
		f.Hear(f.now, 10, 5, 5)
		assert.Equal(t, Closed, f.state(), "somebody else's jobs may be at fault")
		f.try(Unhealthy)
		assert.Equal(t, Open, f.state())
	})
	t.Run("a failure before counts as well", func(t *testing.T) {
		f := newFixture(t, s)
		f.try(Unhealthy)
		f.Hear(f.now, 3, 1, 0)
		assert.Equal(t, Closed, f.state(), "most jobs worked")
		f.Hear(f.now, 3, 2, 1)
		assert.Equal(t, Open, f.state())
	})
	t.Run("silence changes nothing", func(t *testing.T) {
		f := newFixture(t, s)
		f.Hear(f.now, 10, 10, 10)
		f.Hear(f.now, 0, 0, 0)
		f.try(Unhealthy)
		assert.Equal(t, Open, f.state())

		f = newFixture(t, s)
		f.Hear(f.now, 0, 0, 0)
		f.try(Unhealthy)
		assert.Equal(t, Closed, f.state(), "of no jobs, not half failed")
	})
	t.Run("an answer ends it, and so do the jobs of others", func(t *testing.T) {
		f := newFixture(t, s)
		f.Hear(f.now, 10, 10, 10)
		f.try(Healthy, Unhealthy)
		assert.Equal(t, Closed, f.state())
		f.Hear(f.now, 10, 10, 10) // and one failure of its own
		assert.Equal(t, Open, f.state())

		f = newFixture(t, s)
		f.Hear(f.now, 10, 10, 10)
		f.Hear(f.now, 10, 0, 0)
		f.try(Unhealthy)
		assert.Equal(t, Closed, f.state())
	})
	t.Run("it stays open while others fail", func(t *testing.T) {
		f := newFixture(t, s)
		f.Hear(f.now, 1, 1, 1)
		f.try(Unhealthy)
		until := f.Status().Until
		f.sleep(5 * time.Second)
		f.Hear(f.now, 1, 1, 0) // its own failure
		assert.Equal(t, until, f.Status().Until)
		f.Hear(f.now, 2, 2, 1)
		assert.Equal(t, Open, f.state())
		assert.Greater(t, f.Status().Until, until)
		assert.Equal(t, 2, f.Status().Trips)
	})
	t.Run("a probe under way decides for itself", func(t *testing.T) {
		f := newFixture(t, s)
		f.Hear(f.now, 1, 1, 1)
		f.try(Unhealthy)
		f.sleep(13 * time.Second)
		done := f.enter()
		f.Hear(f.now, 1, 1, 1)
		assert.Equal(t, HalfOpen, f.state())
		done(f.now, Healthy)
		assert.Equal(t, Closed, f.state())
	})
}

func TestAHastenedOpenTimeIsTheFirstOne(t *testing.T) {
	f := newFixture(t, Default())
	f.Hasten()
	assert.Equal(t, Status{}, f.Status(), "a closed breaker has none")
	f.fail(5)
	for _, want := range []float64{5, 10, 20, 40, 60, 60} {
		left := f.Status().Until.Sub(f.now)
		assert.InEpsilon(t, want, left.Seconds(), 0.2, "the growth goes on")
		f.Hasten()
		hastened := f.sleepOpen()
		assert.InEpsilon(t, 5, hastened.Seconds(), 0.2)
		assert.LessOrEqual(t, hastened, left)
		probe := f.enter()
		f.Hasten()
		f.refuses() // one probe at a time
		probe(f.now, Unhealthy)
	}
}
