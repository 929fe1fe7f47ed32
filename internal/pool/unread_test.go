package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// A job goes where its text is read first: behind what is read there, without what is there already.
func TestTextsAreReadOneAfterTheOther(t *testing.T) {
	f, us := newFixture(t, "expected", 2), upstreams(2)
	each := f.texts.expected(1000)
	at := func(now time.Time, address string) float64 { return f.members[address].unread.left(now) }
	claim := func(now time.Time, r Request) *Assignment {
		a, err := f.Claim(now, r, nil)
		require.NoError(t, err)
		return a
	}
	for _, u := range us {
		f.Report(start, u.Address, report(start, 0, 0))
	}
	long := claim(start, chain(1, 2, 3, 4))
	assert.InDelta(t, 4*each, at(start, long.Address), 1e-9)
	assert.Zero(t, f.before.mean)
	other := claim(start, chain(1, 2))
	assert.NotEqual(t, long.Address, other.Address, "half of it is there, behind four blocks")
	same := claim(start, chain(1, 2, 3, 5, 6, 7, 8, 9))
	assert.Equal(t, other.Address, same.Address, "two blocks there behind two to read are better than three behind four")
	assert.InDelta(t, (2+8-1.9)*each, at(start, other.Address), 1e-9)
	assert.InDelta(t, 2/f.reads.mean*each/3, f.before.mean, 1e-9, "two blocks were read before one of three jobs")
	c, err := f.eligible(start, selection.Low, f.need(1, chain(1).Data, false), nil, nil, f.cfg.Rand)
	require.NoError(t, err)
	assert.Equal(t, f.before.mean, c.job.QueuedBehind)

	now := start.Add(seconds(3 * each))
	assert.InDelta(t, 4*each, at(now, long.Address), 1e-9, "it is not answered")
	other.Answered(now, true, nil)
	assert.InDelta(t, (8-1.9)*each, at(now, other.Address), 1e-9, "nor is this one")
	long.Done(now, Refused)
	assert.Zero(t, at(now, long.Address), "nothing is read for it")
	same.Answered(now, true, nil)
	assert.Zero(t, at(now, same.Address), "it was read sooner than expected")
}

// Jobs of other sidecars count by their number, where the upstream tells how many began with those that it reads.
func TestReportsOfUnreadTexts(t *testing.T) {
	told := func(running, stalled, completed, begun float64) Report {
		r := report(start, running, stalled)
		r.Completed, r.Begun = completed, begun
		return r
	}
	u := unread{own: 1, jobs: 1}
	for _, c := range []struct {
		report Report
		want   float64
	}{
		{told(7, 3, -1, 0), 5},
		{told(7, 0, -1, 0), 1}, // at least its own
		{told(7, 3, 10, 16), 7},
		{told(7, 0, 10, 15), 3},
		{told(0, 0, 12, 10), 1}, // two ended before they began
		{told(7, 3, 20, 24), 7},
		{told(2, 0, 20, 1), 3}, // no more than there are
	} {
		u.report(c.report, 2, newFetchModel())
		assert.Equal(t, c.want, u.left(start), "%+v", c.report)
	}
	assert.Equal(t, 1.0, u.left(start.Add(time.Minute)))
}

// What the upstream began to read counts as long as it takes, less the time since it began; the rest as jobs in the mean.
func TestWhatIsBeingReadIsKnown(t *testing.T) {
	var u unread
	texts := newFetchModel()
	told := func(after time.Duration, stalled, read float64) float64 {
		r := report(start.Add(after), 0, stalled)
		r.Read = read
		u.report(r, 2, texts)
		return u.left(r.At)
	}
	long := texts.expected(500e6)
	assert.Equal(t, 4.0, told(0, 2, 9e9), "what it read before is not known")
	assert.InDelta(t, 2+long-1, told(2*time.Second, 2, 9.5e9), 1e-9)
	assert.InDelta(t, 2+long-5, told(6*time.Second, 2, 9.5e9), 1e-9)
	assert.InDelta(t, long/10, told(time.Minute, 1, 9.5e9), 1e-9)
	assert.Zero(t, told(2*time.Minute, 0, 9.5e9))
	assert.InDelta(t, 2+long/10, told(3*time.Minute, 2, 100), 1e-9, "it began anew")
}

// An answer shows that what came before it was read, but not which jobs of others did.
func TestAnswersShowWhatWasRead(t *testing.T) {
	var u unread
	u.claim(start, 5)
	u.report(report(start.Add(time.Second), 1, 3), 2, newFetchModel())
	now := start.Add(2 * time.Second)
	assert.Equal(t, 5.0+2*2-1, u.left(now))
	u.answered(start, 5)
	assert.Equal(t, 2*2.0, u.left(now))
	u.claim(now, 7)
	u.claim(now, 1)
	assert.Equal(t, 2*2.0+8, u.left(now))
	u.answered(now, 7)
	assert.Equal(t, 1.0, u.left(now))
	u.end(1)
	assert.Zero(t, u.left(now))
}

// How fast texts are read is learned from those before which nothing was to be read.
func TestSpeedOfReading(t *testing.T) {
	f, now := newFixture(t, "expected", 1), start
	for i := range 50 {
		now = now.Add(time.Minute)
		f.Report(now, upstreams(1)[0].Address, report(now, 0, 0))
		first, err := f.Claim(now, chain(3*i, 1, 2, 3), nil)
		require.NoError(t, err)
		behind, err := f.Claim(now, chain(3*i+1, 1, 2, 3), nil)
		require.NoError(t, err)
		for n, a := range []*Assignment{first, behind} {
			end := now.Add(time.Duration(n+1) * 200 * time.Millisecond)
			a.Answered(end, true, nil)
			a.Done(end, Answered)
		}
	}
	assert.InEpsilon(t, 0.05, f.texts.expected(1000), 0.15)
}

// What texts find at their first place, though nobody sent it from here, tells what others send there.
func TestTextsFindWhatOthersSent(t *testing.T) {
	f, us := newFixture(t, "expected", 2), upstreams(2)
	claim := func(r Request) *Assignment {
		a, err := f.Claim(start, r, nil)
		require.NoError(t, err)
		return a
	}
	for _, u := range us {
		f.Report(start, u.Address, report(start, 0, 0))
	}
	first := claim(chain(1, 2, 3, 4))
	first.Found(0.5)
	assert.Equal(t, 0.5, f.home.mean)
	again := claim(chain(1, 2, 3, 4))
	require.Equal(t, first.Address, again.Address)
	again.Found(1)
	assert.Equal(t, 0.5, f.home.mean, "it was sent from here")
	elsewhere := 0
	for key := range 20 {
		a, was := claim(chain(100+key)), f.home.mean
		a.Found(1)
		assert.Equal(t, a.Cost.Placement == 0, f.home.mean > was)
		if a.Cost.Placement > 0 {
			elsewhere++
		}
	}
	assert.Positive(t, elsewhere)
}
