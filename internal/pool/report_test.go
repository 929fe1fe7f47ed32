package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

func TestHintIsAFresherReport(t *testing.T) {
	f := newFixture(t, "random", 1)
	address := upstreams(1)[0].Address
	f.Report(start, address, report(start, 10, 4))
	l, err := f.Claim(start.Add(time.Second), Request{Project: 9}, nil)
	require.NoError(t, err)
	now := start.Add(2 * time.Second)
	l.Answered(now, true, &Hint{At: now, Running: [2]float64{3, 0}, Waited: -1, Fetched: -1})
	assert.InDelta(t, 3, f.States(now)[0].Jobs, 1e-9)
}

// A report is often older than the hints on answers that came meanwhile.
func TestReportCountsBesideAFresherHint(t *testing.T) {
	f := newFixture(t, "random", 1)
	address := upstreams(1)[0].Address
	f.Report(start, address, report(start, 10, 4))
	l, err := f.Claim(start.Add(time.Second), Request{Project: 9}, nil)
	require.NoError(t, err)
	now := start.Add(6 * time.Second)
	l.Answered(now, true, &Hint{At: now, Running: [2]float64{3, 0}, Waited: -1, Fetched: -1})

	late := report(start.Add(5*time.Second), 7, 200, 5)
	late.Cores = 8
	f.Report(now, address, late)
	s := f.States(now)[0]
	assert.Equal(t, []float64{3, 0}, []float64{s.Running, s.Stalled}, "the hint's load is fresher")
	assert.Zero(t, s.ReportAge)
	assert.Equal(t, 8.0, f.members[address].cores(&f.cfg))
	assert.Equal(t, 1, s.Cached)
	assert.Zero(t, s.Level, "the detector sees each report")

	f.Report(now, address, report(start.Add(4*time.Second), 0, 0))
	assert.Equal(t, 1, f.States(now)[0].Cached, "a report older than the one before is dropped")
}

func TestListingCountsByItself(t *testing.T) {
	f := newFixture(t, "random", 1)
	address := upstreams(1)[0].Address
	status := func(now time.Time, project uint64) selection.Cache {
		s := f.members[address].cache(project, now, &f.cfg)
		return s
	}
	f.Listing(start, address, projects{5: true})
	assert.Equal(t, selection.Cached, status(start.Add(time.Minute), 5), "without any report")
	assert.Equal(t, selection.NotCached, status(start.Add(61*time.Second), 5), "four times as long as load")

	_, err := f.Claim(start.Add(time.Second), Request{Project: 6}, nil)
	require.NoError(t, err)
	now := start.Add(time.Minute)
	load := report(now, 1, 0)
	load.Cached = nil
	f.Report(now, address, load)
	assert.Equal(t, selection.AssumedCached, status(now, 6), "no listing has had the time to name it")
	assert.Equal(t, selection.NotCached, status(now.Add(time.Minute), 5), "load says nothing of the cache")
	f.Listing(start.Add(2*time.Second), address, projects{7: true})
	assert.Equal(t, selection.AssumedCached, status(now, 6), "the fetch may still have run")
	assert.Equal(t, selection.NotCached, status(now, 5))
	f.Listing(start.Add(time.Second), address, projects{5: true})
	assert.Equal(t, selection.NotCached, status(now, 5), "an older listing is dropped")
	f.Listing(now, address, projects{})
	assert.Equal(t, selection.NotCached, status(now, 6), "it would be listed by now")
	f.Listing(now, "10.9.9.9:1", projects{}) // unknown: nothing happens
	assert.Len(t, f.States(now), 1)
}

func TestAssumedUntilReportsSayOtherwise(t *testing.T) {
	f := newFixture(t, "random", 1)
	address := upstreams(1)[0].Address
	status := func(now time.Time) selection.Cache {
		return f.members[address].cache(5, now, &f.cfg)
	}
	l, err := f.Claim(start, Request{Project: 5}, nil)
	require.NoError(t, err)
	assert.Equal(t, selection.NotCached, l.Cache)
	assert.Equal(t, selection.AssumedCached, status(start))
	now := start.Add(3 * time.Second)
	f.Report(now, address, report(now, 1, 0))
	assert.Equal(t, selection.AssumedCached, status(now), "the fetch may still run")
	now = now.Add(10 * time.Second)
	f.Report(now, address, report(now, 1, 0))
	assert.Equal(t, selection.NotCached, status(now), "it would be listed by now")
	now = now.Add(time.Second)
	f.Report(now, address, report(now, 1, 0, 5))
	assert.Equal(t, selection.Cached, status(now))
}

// Where no listing ever refutes them, assumptions are bounded by forgetting
// the old ones: what is fetched now is what the next jobs look for.
func TestTheLatestProjectsAreAssumed(t *testing.T) {
	f := newFixture(t, "least-in-flight", 1)
	now := start
	for project := range uint64(2*maxAssumed + 1) {
		now = now.Add(time.Millisecond)
		l, err := f.Claim(now, Request{Project: project + 1}, nil)
		require.NoError(t, err)
		l.Answered(now, true, nil)
		l.Done(now, Answered)
	}
	status := func(project uint64) selection.Cache {
		return f.set[0].cache(project, now, &f.cfg)
	}
	assert.Equal(t, selection.AssumedCached, status(2*maxAssumed+1))
	assert.Equal(t, selection.NotCached, status(1))
	assert.LessOrEqual(t, f.States(now)[0].Assumed, maxAssumed)
}
