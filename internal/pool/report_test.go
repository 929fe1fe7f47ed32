package pool

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.org/pilotfish/pkg/selection"
)

func TestListingCountsByItself(t *testing.T) {
	f, address := newFixture(t, "random", 1), upstreams(1)[0].Address
	status := func(now time.Time, project uint64) selection.Cache { return f.cache(f.members[address], project, now) }
	f.Listing(start, address, projects{5: true})
	assert.Equal(t, selection.Cached, status(start.Add(time.Minute), 5), "without any report")
	assert.Equal(t, selection.NotCached, status(start.Add(61*time.Second), 5), "four times as long as load")

	f.must(start.Add(time.Second), Request{Project: 6}, nil)
	now := start.Add(time.Minute)
	load := report(now, 1, 0)
	load.Cached = nil
	f.Report(now, address, load)
	assert.Equal(t, selection.AssumedCached, status(now, 6), "no listing has had the time to name it")
	assert.Equal(t, selection.NotCached, status(now.Add(time.Minute), 5), "load does not change the cache")
	f.Listing(start.Add(2*time.Second), address, projects{7: true})
	assert.Equal(t, selection.AssumedCached, status(now, 6), "the fetch may still have run")
	assert.Equal(t, selection.NotCached, status(now, 5))
	f.Listing(start.Add(time.Second), address, projects{5: true})
	assert.Equal(t, selection.NotCached, status(now, 5), "an older listing is dropped")
	f.Listing(now, address, projects{})
	assert.Equal(t, selection.NotCached, status(now, 6), "it would be listed by now")
	f.Listing(now, "10.9.9.9:1", projects{}) // unknown: nothing happens
	assert.Len(t, f.States(now), 1)

	for _, after := range []time.Duration{0, 3 * time.Second} { // a fetch takes 2 s
		f.must(now.Add(after), Request{Project: 8}, nil)
	}
	f.Listing(now.Add(3500*time.Millisecond), address, projects{})
	assert.Equal(t, selection.AssumedCached, status(now, 8), "two fetch times are not over")
	f.Listing(now.Add(5*time.Second), address, projects{})
	assert.Equal(t, selection.NotCached, status(now, 8), "they are over since the first job")
}

// Without listings, an assumption gets the time of each further job, so that the oldest are forgotten first.
func TestAssumptionsWithoutListings(t *testing.T) {
	f, address := newFixture(t, "least-in-flight", 1), upstreams(1)[0].Address
	for _, after := range []time.Duration{0, 3 * time.Second} { // a fetch takes 2 s
		f.must(start.Add(after), Request{Project: 8}, nil)
	}
	now := start.Add(5 * time.Second)
	f.Listing(now, address, projects{})
	assert.Equal(t, selection.AssumedCached, f.cache(f.members[address], 8, now), "two fetch times since the last job are not over")
}

// A hint can lack one or both counts.
func TestHintsWithoutCounts(t *testing.T) {
	unknown := [2]float64{-1, 0}
	nothing := Hint{Running: unknown, Stalled: unknown, Utilization: -1, Waited: -1, Fetched: -1}
	for name, c := range map[string]struct {
		change           func(*Hint)
		running, stalled float64 // the report before has 10 and 4, of 8 cores
	}{
		"nothing":                        {func(*Hint) {}, 10, 4},
		"idle":                           {func(h *Hint) { h.Utilization = 0 }, 0, 0},
		"half used":                      {func(h *Hint) { h.Utilization = 0.5 }, 4, 0},
		"over-used":                      {func(h *Hint) { h.Utilization = 1.5 }, 8, 4},
		"only running":                   {func(h *Hint) { h.Running[0] = 3 }, 3, 4},
		"only stalled":                   {func(h *Hint) { h.Stalled[0] = 3 }, 10, 3},
		"running, and utilization":       {func(h *Hint) { h.Running[0], h.Utilization = 6, 1.25 }, 8, 2},
		"stalled, and utilization":       {func(h *Hint) { h.Stalled[0], h.Utilization = 2, 1 }, 8, 0},
		"all":                            {func(h *Hint) { h.Running[0], h.Stalled[0], h.Utilization = 1, 2, 50 }, 1, 2},
		"more than a server can have":    {func(h *Hint) { h.Running[0], h.Stalled[0] = 2e9, 0 }, 10, 4},
		"more than a server can be used": {func(h *Hint) { h.Utilization = 1e9 }, 10, 4},
		"no number":                      {func(h *Hint) { h.Running[0], h.Stalled[0] = math.NaN(), 0 }, 10, 4},
		"no number of use":               {func(h *Hint) { h.Utilization = math.NaN() }, 10, 4},
	} {
		t.Run(name, func(t *testing.T) {
			f, address := newFixture(t, "random", 1), upstreams(1)[0].Address
			r := report(start, 10, 4)
			r.Cores = 8
			f.Report(start, address, r)
			a := f.must(start, Request{Project: 9}, nil)
			now := start.Add(time.Second)
			h := nothing
			h.At = now
			c.change(&h)
			a.Answered(now, true, &h)
			s := f.States(now)[0]
			assert.Equal(t, []float64{c.running, c.stalled}, []float64{s.Running, s.Stalled})
		})
	}
}

// The load in the trailer of a response counts like the one in its head, while the job is still counted there.
func TestLoadAtTheEndOfAResponse(t *testing.T) {
	f, address := newFixture(t, "random", 1), upstreams(1)[0].Address
	f.Report(start, address, report(start, 10, 4))
	a := f.must(start, Request{Project: 9}, nil)
	now := start.Add(time.Second)
	a.Answered(now, true, nil)
	now = now.Add(time.Second)
	a.Hinted(now, &Hint{At: now, Running: [2]float64{1, 0}, Stalled: [2]float64{2, 0}, Utilization: -1})
	assert.InDelta(t, 3, f.States(now)[0].Jobs, 0)
	a.Hinted(now, &Hint{At: start, Running: [2]float64{9, 0}, Stalled: [2]float64{9, 0}, Utilization: -1})
	assert.InDelta(t, 3, f.States(now)[0].Jobs, 0, "an older one is dropped")
	a.Done(now.Add(time.Millisecond), Answered)
	assert.InDelta(t, 2, f.States(now)[0].Jobs, 0, "the upstream has counted this job")
	a.Hinted(now.Add(time.Second), &Hint{At: now.Add(time.Second), Utilization: -1})
	assert.InDelta(t, 2, f.States(now)[0].Jobs, 0, "after the end it does not count")
}

// Hints count alone at an upstream that does not report, once the first polls are overdue.
func TestHintsCountAlone(t *testing.T) {
	f := newFixture(t, "random", 1)
	jobs := func(after time.Duration) float64 {
		now := start.Add(after)
		a := f.must(now, Request{}, nil)
		a.Answered(now, true, &Hint{At: now, Running: [2]float64{7, 0}, Utilization: -1, Waited: -1, Fetched: -1})
		defer a.Done(now, Answered)
		return f.States(now)[0].Jobs
	}
	assert.InDelta(t, 1, jobs(14*time.Second), 0, "three intervals of 5 s have not passed")
	assert.InDelta(t, 7, jobs(16*time.Second), 0)
	f.Report(start.Add(20*time.Second), upstreams(1)[0].Address, report(start.Add(18*time.Second), 2, 0))
	assert.InDelta(t, 2, f.States(start.Add(20 * time.Second))[0].Jobs, 0, "a report that is newer")
}
