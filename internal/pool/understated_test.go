package pool

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An upstream that says that it is idle, while it owes answers for longer than from one
// report to the next, is not believed. It does not draw the jobs that it cannot run.
func TestAnUpstreamThatAlwaysLooksIdle(t *testing.T) {
	f := newFixture(t, "expected", 3)
	us := upstreams(3)
	liar := us[0].Address
	var mine []*Assignment
	now := start
	claimed := map[string]int{}
	for range 12 {
		for _, u := range us {
			jobs := 20.0
			if u.Address == liar {
				jobs = 0
			}
			f.Report(now, u.Address, report(now, jobs, 0))
		}
		for range 3 {
			now = now.Add(time.Second)
			a, err := f.Claim(now, Request{}, nil)
			require.NoError(t, err)
			if a.Address == liar {
				mine = append(mine, a)
			} else {
				a.Answered(now, true, nil)
				a.Done(now, Answered)
			}
			claimed[a.Address]++
		}
		now = now.Add(2 * time.Second)
	}
	s := f.state(now, liar)
	assert.Equal(t, "fewer than half of the jobs that this sidecar has there", s.Implausible)
	assert.Less(t, claimed[liar], 24, "of 36 jobs: %v", claimed)

	for _, a := range mine {
		a.Answered(now, true, nil)
		a.Done(now, Answered)
	}
	for range 2 * doubtedAfter {
		f.Report(now, liar, report(now, 0, 0))
		now = now.Add(5 * time.Second)
	}
	assert.NotEmpty(t, f.state(now, liar).Implausible, "where it owes nothing, nothing shows that it tells the truth")
	f.Set(now, us[1:])
	f.Set(now, us)
	assert.Empty(t, f.state(now, liar).Implausible, "it joins as a new one")
}

// An upstream that counts all jobs it has is believed, however long they last and
// however long ago its reports are from.
func TestWhoTellsTheTruthIsBelieved(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	f := newFixture(t, "expected", 1)
	address := upstreams(1)[0].Address
	var open []*Assignment
	now := start
	for range 3000 {
		now = now.Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
		switch k := rng.IntN(8); {
		case k < 3:
			a, err := f.Claim(now, Request{}, nil)
			require.NoError(t, err)
			open = append(open, a)
		case k < 6 && len(open) > 0:
			i := rng.IntN(len(open))
			open[i].Answered(now, true, nil)
			open[i].Done(now, Answered)
			open = append(open[:i], open[i+1:]...)
		default:
			there := len(open) // and the jobs of others
			f.Report(now, address, report(now, float64(min(there, 16)+rng.IntN(3)), float64(max(0, there-16))))
		}
		require.Empty(t, f.state(now, address).Implausible)
	}
}
