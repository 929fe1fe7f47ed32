package quality

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Projects against a naive list of jobs, each with the weight that halvings have left.
func TestProjectsLikeANaiveCount(t *testing.T) {
	shown := 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var p Projects
		counts := map[uint64]int{}
		now, halved := start, time.Time{}
		for range 2000 {
			now = now.Add(time.Duration(rng.ExpFloat64() * float64(time.Second)))
			if rng.IntN(500) == 0 {
				now = now.Add(time.Duration(rng.IntN(12)) * time.Minute)
			}
			if len(counts) == 0 {
				halved = now
			}
			for ; now.Sub(halved) >= halfLife && len(counts) > 0; halved = halved.Add(halfLife) {
				for key := range counts {
					counts[key] /= 2
				}
				for key, jobs := range counts {
					if jobs == 0 {
						delete(counts, key)
					}
				}
			}
			if len(counts) == 0 {
				halved = now
			}
			key := rng.Uint64N(30)
			p.Note(now, key, fmt.Sprint("project ", key))
			if key == 0 { // no project
				continue
			}
			counts[key]++
			if rng.IntN(50) == 0 {
				n := rng.IntN(35)
				want := []Busy{}
				for key, jobs := range counts {
					want = append(want, Busy{key, fmt.Sprint("project ", key), jobs})
				}
				slices.SortFunc(want, func(a, b Busy) int { return cmp.Or(b.Jobs-a.Jobs, strings.Compare(a.Name, b.Name)) })
				want = want[:min(n, len(want))]
				require.Equal(t, want, Top(p.Recent(now), n), "seed %d", seed)
				shown += len(want)
			}
		}
	}
	assert.Greater(t, shown, 10_000)
}

func TestProjectsAreBounded(t *testing.T) {
	var p Projects
	name := "p"
	for key := range uint64(2 * maxProjects) {
		p.Note(start, key+1, name)
	}
	assert.Len(t, p.of, maxProjects)
	p.Note(start, 1, name)
	assert.Equal(t, []Busy{{1, "p", 2}}, Top(p.Recent(start), 1), "what is in it still counts")
	assert.Empty(t, p.Recent(start.Add(2*time.Hour)))
}
