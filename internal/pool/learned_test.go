package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestKeysThatComeOnce: a project that was seen comes again; of others, that is as likely as
// the jobs so far say.
func TestKeysThatComeOnce(t *testing.T) {
	f, w := newFixture(t, "random", 1), &witness{}
	f.cfg.Policy = w
	claim := func(project uint64) float64 {
		a := f.must(start, Request{Project: project}, nil)
		answer(a, start)
		return w.job.Once
	}
	assert.InDelta(t, 0.5, claim(1), 0.1, "nothing is known")
	assert.Zero(t, claim(1), "it came again")
	for project := range uint64(300) {
		claim(project + 10)
	}
	assert.Greater(t, claim(2), 0.9)
	assert.Zero(t, claim(2))
	for range 300 {
		claim(2)
	}
	assert.Less(t, claim(3), 0.1)
}

// TestHowLongJobsTake: it is learned of a project's jobs from when they began to run until
// their ends, and not where nobody tells when they began.
func TestHowLongJobsTake(t *testing.T) {
	f := newFixture(t, "least-in-flight", 1)
	run := func(project uint64, took time.Duration, hint *Hint) float64 {
		a := f.must(start, Request{Project: project}, nil)
		if hint != nil {
			a.Answered(start.Add(took/2), true, hint)
		}
		a.Done(start.Add(took), Answered)
		return a.Expected
	}
	waited := func(d time.Duration) *Hint { return &Hint{Known: true, Cached: true, Waited: d} }
	assert.Zero(t, run(1, 14*time.Second, nil), "nothing is known")
	assert.Zero(t, run(1, 14*time.Second, waited(4*time.Second)), "it told nothing")
	assert.Positive(t, run(1, time.Second, nil))
	for range 20 {
		run(1, 14*time.Second, waited(4*time.Second))
	}
	assert.InDelta(t, 10, run(1, time.Second, nil), 2)
	assert.Zero(t, run(2, time.Second, nil), "of other projects nothing is known")
	assert.Zero(t, run(0, time.Second, waited(0)))
	assert.Zero(t, run(0, time.Second, nil), "jobs without a project have nothing in common")
}
