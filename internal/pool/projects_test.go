package pool

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// randomPool is a pool to which random things happen.
type randomPool struct {
	*fixture
	rng  *rand.Rand
	now  time.Time
	all  []Upstream
	open []*Assignment

	other selection.Policy
}

func (h *randomPool) address() string { return h.all[h.rng.IntN(len(h.all))].Address }

func (h *randomPool) project() uint64 { return h.rng.Uint64N(12) } // 0 is none

// listing names a third of the projects, most of them with a size. It may name 0, which is none.
func (h *randomPool) listing() sized {
	listed := sized{}
	for range 4 {
		listed[h.rng.Uint64N(12)] = float64(h.rng.IntN(4)) * 1e8
	}
	return listed
}

// happen makes one thing happen that is not a claim.
func (h *randomPool) happen() {
	h.now = h.now.Add(time.Duration(h.rng.ExpFloat64() * float64(300*time.Millisecond)))
	switch k := h.rng.IntN(100); {
	case k < 25:
		r := report(h.now, float64(h.rng.IntN(24)), float64(h.rng.IntN(3)*h.rng.IntN(4)))
		if r.Cached = nil; h.rng.IntN(2) == 0 {
			r.Cached = h.listing()
		}
		h.Report(h.now, h.address(), r)
	case k < 45:
		h.Listing(h.now, h.address(), h.listing())
	case k < 47:
		h.ReportFailed(h.now, h.address(), ErrNoResponse)
	case k < 50:
		h.Drain(h.address(), h.rng.IntN(4) == 0)
	case k < 52:
		h.gates[h.address()].shut = h.rng.IntN(4) == 0
	case k < 54:
		h.change()
	case k < 56:
		h.whole() // also in a large pool
	case k < 57:
		h.now = h.now.Add(time.Duration(h.rng.IntN(120)) * time.Second) // reports and listings grow old
	case k < 77 && len(h.open) > 0:
		a := h.open[h.rng.IntN(len(h.open))]
		hint := &Hint{At: h.now, Known: h.rng.IntN(2) == 0, Cached: h.rng.IntN(3) == 0, Waited: -1, Fetched: -1}
		a.Answered(h.now, h.rng.IntN(8) > 0, hint)
	case len(h.open) > 0:
		i := h.rng.IntN(len(h.open))
		h.open[i].Done(h.now, Outcome(h.rng.IntN(Outcomes)))
		h.open = slices.Delete(h.open, i, i+1)
	}
}

// whole makes claims look at all upstreams for a while, or ends that.
func (h *randomPool) whole() {
	s := h.cfg.Settings
	s.Policy, h.other, s.Detector = h.other, s.Policy, nil
	h.SetSettings(s)
}

// change makes some upstreams leave, come back, or restart.
func (h *randomPool) change() {
	set := slices.DeleteFunc(slices.Clone(h.all), func(Upstream) bool { return h.rng.IntN(8) == 0 })
	for i := range set {
		if h.rng.IntN(8) == 0 {
			set[i].StartedAt = h.now
		}
	}
	h.Set(h.now, set)
}

// naive is what a claim must see of the upstreams, if it remembers nothing from others:
// every listing is asked. size is what the last of them tells of the project's data.
func (h *randomPool) naive(project uint64, members []*member) (views []selection.View, listed []bool, size float64) {
	for _, m := range members {
		names := project != 0 && m.cached != nil && m.cached.Contains(project) && h.now.Sub(m.listed) <= ListingIntervals*h.cfg.Interval
		var v selection.View
		m.view(&v, h.now, m.fresh(h.now, &h.cfg), &h.cfg)
		m.expect(&v, project, names, h.now)
		v.Cache = m.cache(project, h.now, &h.cfg)
		if v.Cache == selection.Cached && m.cached.Bytes(project) > 0 {
			size = m.cached.Bytes(project)
		}
		views, listed = append(views, v), append(listed, names)
	}
	return views, listed, size
}

// inOrder is the first of all upstreams in the project's order.
func (h *randomPool) inOrder(project uint64) []*member {
	all := slices.Clone(h.set)
	slices.SortFunc(all, func(a, b *member) int {
		return cmp.Compare(selection.Rendezvous(project, b.id, b.Weight), selection.Rendezvous(project, a.id, a.Weight))
	})
	return all[:near]
}

// What a claim remembers from others of the project never changes what it sees or picks.
func TestRememberedIsWhatIsThere(t *testing.T) {
	for _, n := range []int{1, 4, 14, nearFrom - 1, nearFrom + 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			h := &randomPool{fixture: newFixture(t, "expected", n), rng: rand.New(rand.NewPCG(uint64(n), 5)), now: start, all: upstreams(n), other: selection.LeastInFlight{}}
			source := rand.NewPCG(6, 7)
			h.cfg.Rand, h.cfg.Explain = rand.New(source), n%2 == 0
			claims, cached := 0, 0
			for range 12_000 {
				if h.rng.IntN(3) > 0 {
					h.happen()
					continue
				}
				r := Request{Project: h.project()}
				var tried []string
				if h.rng.IntN(5) == 0 {
					tried = []string{h.address()}
				}
				remembered := *h.projects.find(r.Project)
				job := h.job(h.now, r.Priority, &remembered)
				seen, err := h.eligible(h.now, &job, &remembered, nil, tried)
				if err != nil {
					continue
				}
				views, listed, size := h.naive(r.Project, seen.members)
				require.Equal(t, views, seen.views)
				require.Equal(t, listed, seen.listed)
				if size > 0 {
					require.Equal(t, size, remembered.listed)
				}
				if set := h.nearby(&remembered); set != nil {
					require.Equal(t, h.inOrder(r.Project), set)
				}
				dice := *source
				want := seen.members[h.cfg.Policy.Pick(job, views, rand.New(&dice))].Address
				a, err := h.Claim(h.now, r, tried)
				require.NoError(t, err)
				require.Equal(t, want, a.Address)
				h.open = append(h.open, a)
				claims++
				if a.Cache == selection.Cached {
					cached++
				}
			}
			assert.Greater(t, claims, 1000)
			assert.Greater(t, cached, claims/20, "listings counted")
		})
	}
}

// The bound forgets no job that is open.
func TestStatesOfProjectsAreBounded(t *testing.T) {
	p := newProjectStates(100)
	for id := range uint64(3) {
		p.begin(p.of(5 + id))
	}
	p.begin(p.of(7))
	p.end(p.of(6))
	p.of(8).told = 1
	for id := range uint64(1000) {
		p.of(1000 + id)
		assert.LessOrEqual(t, len(p.young)+len(p.old), 102)
	}
	assert.Equal(t, 2, p.find(7).open)
	assert.Equal(t, 1, p.find(5).open)
	for id := uint64(3000); len(p.young) > 10; id++ {
		p.of(id) // until there is room among the young ones
	}
	for _, id := range slices.Collect(maps.Keys(p.old))[:5] {
		p.of(id) // comes back from the old ones
	}
	seen := map[uint64]bool{}
	for s := range p.all {
		assert.False(t, seen[s.id], "project %d is there twice", s.id)
		seen[s.id] = true
	}
	assert.Zero(t, p.find(8).told, "nobody came for it for long")
	p.end(p.find(7))
	p.end(p.find(7))
	p.end(p.find(5))
	assert.Empty(t, p.open)
	assert.Equal(t, make([]*projectState, 2), p.open[:2], "the memory of those that ended is free")
	for id := range uint64(1000) {
		p.of(5000 + id)
		p.of(9).told = 2
	}
	assert.LessOrEqual(t, len(p.old), 50)
	assert.NotContains(t, p.old, uint64(7))
	assert.Equal(t, 2.0, p.find(9).told, "jobs of it came all the time")
	assert.Zero(t, p.find(123456).open)
	assert.NotContains(t, p.young, uint64(123456), "to ask does not remember")
}

// asked counts how often it is asked.
type asked struct {
	sized
	times *int
}

func (a asked) Contains(project uint64) bool {
	*a.times++
	return a.sized.Contains(project)
}

func (a asked) Bytes(project uint64) float64 {
	*a.times++
	return a.sized.Bytes(project)
}

// A listing is asked for a project when it is new, and not by the jobs that follow.
func TestAListingIsAskedOnce(t *testing.T) {
	f := newFixture(t, "expected", 3)
	times := 0
	listing := asked{sized{5: 1e9}, &times}
	for _, u := range upstreams(3) {
		f.Listing(start, u.Address, listing)
	}
	claim := func() int {
		times = 0
		a, err := f.Claim(start, Request{Project: 5}, nil)
		require.NoError(t, err)
		a.Done(start, Answered)
		return times
	}
	assert.Positive(t, claim())
	assert.Zero(t, claim())
	f.Listing(start.Add(1), upstreams(3)[1].Address, listing)
	assert.Equal(t, 3, claim(), "the new one for the project, and for its size; and the last one for the size that counts")
	assert.Zero(t, claim())
}

// The breaker of an upstream may refuse a job although it was ready. What is known of the
// other upstreams does not become that of their neighbours.
func TestAfterARefusalTheRestIsAsItWas(t *testing.T) {
	f := newFixture(t, "expected", 4)
	us := upstreams(4)
	f.Listing(start, us[1].Address, sized{5: 1e9})
	f.Listing(start, us[3].Address, sized{5: 1e9})
	f.gates[us[1].Address].full, f.gates[us[3].Address].full = true, true
	a, err := f.Claim(start, Request{Project: 5}, nil)
	require.NoError(t, err)
	assert.Contains(t, []string{us[0].Address, us[2].Address}, a.Address)
	assert.False(t, a.listed)
	f.gates[us[3].Address].full = false
	a, err = f.Claim(start, Request{Project: 5}, nil)
	require.NoError(t, err)
	assert.Equal(t, us[3].Address, a.Address)
	assert.True(t, a.listed)
}
