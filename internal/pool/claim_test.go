package pool

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A job that finds no other upstream is a probe of one whose open time has grown, as
// soon as that is allowed.
func TestNoJobWaitsForGrownOpenTimes(t *testing.T) {
	us := upstreams(5)
	for name, c := range map[string]struct {
		among, tried []string
		allDrain     bool
		early        int // this one opens when it is hastened
		hastened     []int
		to           int // where the job goes; -1 is nowhere
	}{
		"another is left":        {nil, nil, false, 0, nil, 3},
		"no other is left":       {nil, []string{us[3].Address}, false, 1, []int{0, 1, 2}, 1},
		"too early":              {nil, []string{us[3].Address}, false, -1, []int{0, 1, 2}, -1},
		"those it has tried":     {nil, []string{us[3].Address, us[1].Address}, false, 1, []int{0, 2}, -1},
		"those it may go to":     {[]string{us[2].Address}, nil, false, 2, []int{2}, 2},
		"one that drains is not": {nil, []string{us[3].Address}, false, 4, []int{0, 1, 2}, -1},
		"all drain":              {nil, []string{us[3].Address}, true, 4, []int{0, 1, 2, 4}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "least-in-flight", 5)
			us := upstreams(5)
			for i := range us {
				us[i].Draining = i == 4 || c.allDrain
			}
			f.Set(start, us)
			for i, u := range us {
				f.gates[u.Address].shut, f.gates[u.Address].early = i != 3, i == c.early
			}
			a, err := f.Claim(start, Request{Among: c.among}, c.tried)
			if c.to < 0 {
				require.ErrorIs(t, err, ErrNoneEligible)
			} else {
				require.NoError(t, err)
				assert.Equal(t, us[c.to].Address, a.Address)
				assert.False(t, a.Panic)
			}
			for i, u := range us {
				assert.Equal(t, slices.Contains(c.hastened, i), f.gates[u.Address].hastened, "upstream %d", i)
			}
		})
	}
}
