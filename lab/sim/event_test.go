package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The queue gives events in the order that sorting them would, whatever is
// added meanwhile, and however far ahead.
func TestEventsComeInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	var es events
	var planned []event
	plan := func(after time.Duration) {
		ahead := []time.Duration{0, time.Microsecond, 300 * time.Millisecond, 2 * time.Minute, 20 * time.Minute}
		e := event{at: after + time.Duration(rng.Int64N(int64(ahead[rng.IntN(len(ahead))])+1)), rank: rank(rng.IntN(6))}
		es.add(e.at, e.rank, nil)
		e.seq = es.seq
		planned = append(planned, e)
	}
	for range 200 {
		plan(0)
	}
	for n := 0; len(planned) > 0; n++ {
		at, ok := es.next()
		require.True(t, ok)
		least := slices.MinFunc(planned, func(a, b event) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank), cmp.Compare(a.seq, b.seq))
		})
		require.Equal(t, least.at, at)
		if n < 5000 && rng.IntN(3) == 0 { // something comes between looking and taking
			plan(at)
			continue
		}
		got := es.pop()
		require.Equal(t, least, got)
		planned = slices.DeleteFunc(planned, func(e event) bool { return e.seq == got.seq })
		if n < 5000 {
			plan(got.at)
		}
	}
	_, ok := es.next()
	assert.False(t, ok)
}
