package agenda

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Entries are returned in sorted order, including entries that are added between Takes.
func TestEntriesComeInOrder(t *testing.T) {
	type entry = Entry[int, string]
	rng := rand.New(rand.NewPCG(8, 8))
	var a Agenda[int, string]
	var planned []entry
	plan := func(after int) {
		ahead := []int{1, 2, 100, 1e6}
		e := entry{At: after + rng.IntN(ahead[rng.IntN(len(ahead))]), rank: uint8(rng.IntN(6))}
		a.Add(e.At, e.rank, "")
		e.number = a.added
		planned = append(planned, e)
	}
	for range 200 {
		plan(0)
	}
	for n := 0; len(planned) > 0; n++ {
		require.Equal(t, len(planned), a.Len())
		at, ok := a.Next()
		require.True(t, ok)
		least := slices.MinFunc(planned, func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.rank, b.rank), cmp.Compare(a.number, b.number))
		})
		require.Equal(t, least.At, at)
		if n < 5000 && rng.IntN(3) == 0 { // an entry is added between Next and Take
			plan(at)
			continue
		}
		got := a.Take()
		require.Equal(t, least, got)
		planned = slices.DeleteFunc(planned, func(e entry) bool { return e.number == got.number })
		switch {
		case n < 5000 && rng.IntN(2) == 0:
			plan(got.At)
		case n < 5000:
			a.Again(got, got.At+7)
			got.At += 7
			planned = append(planned, got)
		}
	}
	_, ok := a.Next()
	assert.False(t, ok)
}
