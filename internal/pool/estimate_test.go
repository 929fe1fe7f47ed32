package pool

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The estimate after any history equals the report, plus open claims it has
// not seen, less ends it has not seen: counted anew from the whole history. Where
// reports tell of fewer jobs than there are, own claims alone count.
func TestEstimateAgainstHistory(t *testing.T) {
	type past struct {
		*Assignment
		claimed, ended time.Time
	}
	rng := rand.New(rand.NewPCG(7, 7))
	f := newFixture(t, "random", 1)
	address := upstreams(1)[0].Address
	now, last, reported := start, time.Time{}, 0.0
	var history []*past
	for range 5000 {
		now = now.Add(time.Duration(1+rng.IntN(300)) * time.Millisecond)
		switch k := rng.IntN(10); {
		case k < 5:
			l, err := f.Claim(now, Request{}, nil)
			require.NoError(t, err)
			history = append(history, &past{Assignment: l, claimed: now})
		case k < 9 && len(history) > 0:
			h := history[rng.IntN(len(history))]
			if h.ended.IsZero() {
				h.Answered(now, true, nil)
				h.Done(now, Answered)
				h.ended = now
			}
		default:
			at := now.Add(-time.Duration(rng.IntN(1000)) * time.Millisecond)
			if !at.After(last) {
				continue
			}
			reported = float64(rng.IntN(60))
			f.Report(now, address, report(at, reported, 0))
			last = at
		}
		want, assigned, own := reported, reported, 0.0
		for _, h := range history {
			open := h.ended.IsZero()
			if open {
				own++
			}
			seen := !h.claimed.After(last)
			if !seen {
				assigned++
			}
			switch {
			case !seen && open:
				want++
			case seen && !open && h.ended.After(last):
				want--
			}
		}
		if last.IsZero() || now.Sub(last) > 15*time.Second || f.set[0].ledger.doubted {
			want, assigned = own, own
		}
		require.InDelta(t, math.Max(want, own), f.States(now)[0].Jobs, 1e-9)
		require.InDelta(t, assigned, f.set[0].load.assigned(f.set[0].fresh(now, &f.cfg)), 1e-9)
	}
}

// Without reports, what is remembered does not grow without bound, and what is
// counted stays exact.
func TestEstimateIsBounded(t *testing.T) {
	var e estimate
	e.adopt(start, 5, 0)
	now := start
	for range 5 * maxHistory {
		now = now.Add(time.Millisecond)
		e.claim(now)
		e.claim(now)
		e.done(now)
	}
	assert.LessOrEqual(t, len(e.claims.latest), maxHistory)
	assert.Equal(t, 5*maxHistory, e.inFlight)
	assert.Equal(t, float64(5+5*maxHistory), e.present(true))
	assert.Equal(t, float64(5+10*maxHistory), e.assigned(true))
	e.adopt(now.Add(-10*time.Millisecond), float64(5*maxHistory), 0)
	assert.Equal(t, float64(5*maxHistory+10), e.present(true), "what happened after the report's instant is counted anew")
	e.reset()
	assert.Equal(t, float64(5*maxHistory), e.present(e.fresh(now, time.Hour)))
}

// A project's jobs are as long as the mean until their answers have shown otherwise.
func TestLengthOfAProjectsJobs(t *testing.T) {
	d := newDurations(answerPrior)
	var short, long logMean
	for range 300 {
		d.observe(&short, 100*time.Millisecond)
		d.observe(&long, 10*time.Second)
	}
	assert.Equal(t, 1.0, d.relative(logMean{}))
	assert.InEpsilon(t, 0.1, d.relative(short), 0.15, "the mean of logarithms is 1 s")
	assert.InEpsilon(t, 10, d.relative(long), 0.15)
}
