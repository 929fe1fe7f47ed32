package pool

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestHeirIsWhereTheProjectFalls(t *testing.T) {
	f := newFixture(t, "expected", 5)
	all := upstreams(5)
	f.Set(start, all)
	for project := uint64(1); project <= 100; project++ {
		home := f.Heir(start, project, "")
		next := f.Heir(start, project, home)
		assert.NotEmpty(t, next)
		assert.NotEqual(t, home, next)
		assert.Equal(t, home, f.Heir(start, project, next), "who is not its home leaves, and nothing changes")

		f.Set(start, slices.DeleteFunc(slices.Clone(all), func(u Upstream) bool { return u.Address == home }))
		assert.Equal(t, next, f.Heir(start, project, ""), "it is the home once the other is gone")
		f.Set(start, all)
	}
}

func TestHeirStaysAndMayBePicked(t *testing.T) {
	f := newFixture(t, "expected", 3)
	all := upstreams(3)
	f.Set(start, all)
	const project = 7
	heir := f.Heir(start, project, "")
	i := slices.IndexFunc(all, func(u Upstream) bool { return u.Address == heir })
	other := f.Heir(start, project, heir)

	for name, change := range map[string]func(*Upstream){
		"drains":     func(u *Upstream) { u.Draining = true },
		"stops soon": func(u *Upstream) { u.StopsAt = start.Add(heirLives - time.Second) },
	} {
		set := slices.Clone(all)
		change(&set[i])
		f.Set(start, set)
		assert.Equal(t, other, f.Heir(start, project, ""), name)
	}
	f.Set(start, all)
	f.gates[heir].shut = true
	assert.Equal(t, other, f.Heir(start, project, ""), "its breaker is open")
	f.gates[heir].shut = false
	assert.Equal(t, heir, f.Heir(start, project, ""))

	f.Set(start, all[:1])
	assert.Empty(t, f.Heir(start, project, all[0].Address), "nobody is left")
}

func TestNoHeirForWhatIsCachedElsewhere(t *testing.T) {
	f := newFixture(t, "expected", 3)
	all := upstreams(3)
	f.Set(start, all)
	const project = 7
	f.Report(start, all[2].Address, report(start, 0, 0, project))
	assert.Empty(t, f.Heir(start, project, all[0].Address))
	assert.NotEmpty(t, f.Heir(start, project, all[2].Address), "what leaves has it, and nobody else")

	all[2].Draining = true
	f.Set(start, all)
	assert.NotEmpty(t, f.Heir(start, project, all[0].Address), "what drains has it for nobody")
}
