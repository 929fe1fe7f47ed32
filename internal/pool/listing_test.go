package pool

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// claimed is a listing that names every project and says that there are so many.
type claimed int

func (claimed) Contains(uint64) bool { return true }
func (claimed) Bytes(uint64) float64 { return 0 }
func (n claimed) Len() int           { return int(n) }

// finds lets a job of a project run at an upstream, which tells whether it found its data.
func (f *fixture) finds(t *testing.T, now time.Time, address string, project uint64, found bool) {
	t.Helper()
	a, err := f.Claim(now, Request{Project: project, Among: []string{address}}, nil)
	require.NoError(t, err)
	a.Answered(now, true, &Hint{At: now, Known: true, Cached: found, Waited: -1, Fetched: -1})
	a.Done(now, Answered)
}

func TestAListingThatIsWrongIsNotBelieved(t *testing.T) {
	f, us, now := newFixture(t, "expected", 3), upstreams(3), start
	liar := us[0].Address
	m := f.members[liar]
	for i, u := range us {
		r := report(now, 0, 0, uint64(i))
		if i == 0 {
			r.Cached = claimed(50)
		}
		f.Report(now, u.Address, r)
	}
	for range 5 {
		f.finds(t, now, liar, 7, false)
	}
	assert.False(t, m.listing.doubted, "perhaps the data of all projects has changed")
	for i := range 20 {
		f.finds(t, now, us[1+i%2].Address, uint64(1+i%2), true)
	}
	assert.Equal(t, selection.Cached, m.cache(9, now, &f.cfg))
	f.finds(t, now, liar, 7, false)
	assert.Equal(t, selection.NotCached, m.cache(9, now, &f.cfg))
	assert.Equal(t, "a cache listing that most jobs found to be wrong", f.state(now, liar).Implausible)
	for _, u := range us[1:] {
		assert.Empty(t, f.state(now, u.Address).Implausible)
	}

	now = now.Add(time.Second)
	f.finds(t, now, liar, 9, false)
	now = now.Add(time.Second)
	r := report(now, 0, 0)
	r.Cached = claimed(50)
	f.Report(now, liar, r)
	assert.Equal(t, selection.AssumedCached, m.cache(9, now, &f.cfg), "what was fetched there is known all the same")

	for range 30 {
		f.finds(t, now, liar, 9, true)
	}
	assert.Equal(t, selection.Cached, m.cache(11, now, &f.cfg), "it is right again")
	f.Set(now, us[1:])
	f.Set(now, us)
	assert.Zero(t, f.members[liar].listing, "a newcomer has a clean record")
}

// Where the listings of all are wrong about as often, none is doubted.
func TestListingsThatAreOftenWrongEverywhere(t *testing.T) {
	f, us, now := newFixture(t, "expected", 3), upstreams(3), start
	for i, u := range us {
		f.Report(now, u.Address, report(now, 0, 0, uint64(i+1)))
	}
	for i := range 20 {
		f.finds(t, now, us[1+i%2].Address, uint64(2+i%2), i%5 > 1)
	}
	for range 5 {
		f.finds(t, now, us[0].Address, 1, false)
	}
	assert.False(t, f.members[us[0].Address].listing.doubted)
}

// Answers that say nothing of the cache, and jobs that came without being listed, prove
// nothing.
func TestWhatProvesNothingOfAListing(t *testing.T) {
	f, us, now := newFixture(t, "expected", 2), upstreams(2), start
	f.Report(now, us[0].Address, report(now, 0, 0, 1))
	f.Report(now, us[1].Address, report(now, 0, 0, 2))
	for range 20 {
		f.finds(t, now, us[1].Address, 2, true)
		f.finds(t, now, us[0].Address, 5, false)
		f.finds(t, now, us[0].Address, 0, false)
		a, err := f.Claim(now, Request{Project: 1, Among: []string{us[0].Address}}, nil)
		require.NoError(t, err)
		a.Answered(now, true, &Hint{At: now, Waited: -1, Fetched: -1})
		a.Done(now, Answered)
	}
	assert.Zero(t, f.members[us[0].Address].listing)
}

// Whatever one upstream lists, and whatever its jobs find: another whose listing is right
// is believed.
func TestGuaranteeALiarsListingHurtsItAlone(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 4))
		f, us, now := newFixture(t, "expected", 4), upstreams(4), start
		luck := rng.Float64()
		for range 300 {
			now = now.Add(time.Duration(rng.IntN(1000)) * time.Millisecond)
			switch i := rng.IntN(4); {
			case rng.IntN(5) == 0 && i == 0:
				r := report(now, 0, 0)
				r.Cached = claimed([]int{0, 1, 50, 20_000, 1 << 30}[rng.IntN(5)])
				f.Report(now, us[0].Address, r)
			case rng.IntN(5) == 0:
				f.Report(now, us[i].Address, report(now, 0, 0, uint64(i), 40))
			case i == 0:
				f.finds(t, now, us[0].Address, 1+rng.Uint64N(50), rng.Float64() < luck)
			default:
				f.finds(t, now, us[i].Address, uint64(i), true)
			}
		}
		for _, u := range us[1:] {
			require.Empty(t, f.state(now, u.Address).Implausible, "seed %d", seed)
		}
	}
}

func TestListingsThatAreTooLong(t *testing.T) {
	for name, c := range map[string]struct {
		others []int
		n      int
		want   string
	}{
		"too long for anyone":    {[]int{1 << 24, 1 << 24}, 1 << 30, "1073741824 cached projects"},
		"longer than the others": {[]int{900, 1000}, 17_000, "17000 cached projects, more than 16 times as many as others"},
		"as long as another":     {[]int{10, 1100}, 17_000, ""},
		"few":                    {[]int{1, 2}, 9000, ""},
		"alone":                  {nil, 1_000_000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, us := newFixture(t, "expected", 3), upstreams(3)
			for i, n := range c.others {
				r := report(start, 0, 0)
				r.Cached = claimed(n)
				f.Report(start, us[1+i].Address, r)
			}
			r := report(start, 0, 0)
			r.Cached = claimed(c.n)
			f.Report(start, us[0].Address, r)
			assert.Equal(t, c.want, f.state(start, us[0].Address).Implausible)
			assert.Equal(t, c.want == "", f.members[us[0].Address].cache(5, start, &f.cfg) == selection.Cached)
			f.Report(start.Add(time.Second), us[0].Address, report(start.Add(time.Second), 0, 0, 5))
			assert.Empty(t, f.state(start, us[0].Address).Implausible, "the next one is another matter")
		})
	}
}
