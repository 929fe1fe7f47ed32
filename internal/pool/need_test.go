package pool

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/pkg/selection"
)

// chain returns a job whose prompt has these blocks.
func chain(blocks ...int) Request {
	var parts []intake.Part
	h := uint64(0)
	for _, block := range blocks {
		h = hash.Pair(h, uint64(block)+1)
		parts = append(parts, intake.Part{Key: h, Bytes: 1000})
	}
	return Request{Project: parts[0].Key, Data: &intake.Parts{Parts: parts}}
}

// TestWhatUpstreamsHold compares with prompts that are kept whole, over random trees of prompts: the prefix that each upstream
// has cached, and whether it has the placing block. Blocks that an upstream may not have got are not counted.
func TestWhatUpstreamsHold(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f, now := newFixture(t, "random", 4), start
		read, forks := map[string]map[string]bool{}, map[string]map[int]bool{}
		for _, u := range upstreams(4) {
			read[u.Address] = map[string]bool{}
		}
		for range 300 {
			now = now.Add(time.Second)
			blocks := make([]int, 1+rng.IntN(6))
			for i := range blocks {
				blocks[i] = rng.IntN(3)
			}
			upTo := func(i int) string { return fmt.Sprint(blocks[:i+1]) }
			placed := 0
			for i := range blocks[1:] {
				after := forks[upTo(i)]
				if after == nil {
					after = map[int]bool{}
					forks[upTo(i)] = after
				}
				if after[blocks[i+1]] = true; len(after) > 1 {
					placed = i + 1
				}
			}
			r := chain(blocks...)
			a, err := f.Claim(now, r, nil)
			require.NoError(t, err)
			assert.Equal(t, r.Data.Parts[placed].Key, a.project.id, "%v is placed by block %d", blocks, placed)
			var n need
			f.need(&n, &r, false)
			had := 0
			for _, m := range f.set {
				held := 0
				for held < len(blocks) && (read[m.Address][upTo(held)] || m == a.member) {
					held++
				}
				found := m.cached.holds(now, &n, f.cfg.Interval)
				require.InDelta(t, 0.95*float64(held)/float64(len(blocks)), found.warm, 1e-9)
				require.Equal(t, held > placed, found.cache == selection.AssumedCached)
				if m == a.member {
					for had < len(blocks) && read[m.Address][upTo(had)] {
						had++
					}
					require.InDelta(t, 0.95*float64(had)/float64(len(blocks)), a.found.warm, 1e-9)
				}
			}
			switch o := []Outcome{Answered, NotStarted, Refused}[rng.IntN(3)]; o {
			case Answered:
				a.Answered(now, true, nil)
				for i := range blocks {
					read[a.Address][upTo(i)] = true
				}
				a.Done(now, o)
			case Refused: // nothing of it is there any more
				for i := range blocks {
					delete(read[a.Address], upTo(i))
				}
				a.Done(now, o)
			default:
				for i := range blocks[had:] { // what follows a gap was there and is not known now
					delete(read[a.Address], upTo(had+i))
				}
				a.Done(now, o)
			}
		}
	}
}

// The parts of a set have the weights of their sizes if all are known, else equal weights.
func TestSets(t *testing.T) {
	f, us := newFixture(t, "least-in-flight", 2), upstreams(2)
	set := func(keys ...uint64) Request {
		r := Request{Project: 99, Data: &intake.Parts{Set: true}}
		for _, key := range keys {
			r.Data.Parts = append(r.Data.Parts, intake.Part{Key: key})
		}
		return r
	}
	warm := func(r Request) (shares []float64, placed uint64) {
		c := &candidates{}
		f.need(&c.need, &r, true)
		require.NoError(t, f.eligible(start, c, nil, nil, f.cfg.Rand))
		for _, v := range c.views {
			shares = append(shares, v.Warm)
		}
		return shares, c.need.project.id
	}
	f.Listing(start, us[0].Address, sized{5: 9e6, 6: 1e6})
	f.Listing(start, us[1].Address, sized{7: 10e6})
	shares, placed := warm(set(5, 6, 7))
	assert.InDeltaSlice(t, []float64{0.5, 0.5}, shares, 1e-9, "by size")
	assert.Equal(t, uint64(5), placed, "the first places it")
	var n need
	r := set(5, 6, 7)
	f.need(&n, &r, false)
	assert.InDelta(t, f.fetches.expected(9e6), f.fetch(&n), 1e-9, "its price is that of the first")
	shares, _ = warm(set(5, 6, 7, 8))
	assert.InDeltaSlice(t, []float64{0.5, 0.25}, shares, 1e-9, "by number")

	a, err := f.Claim(start, set(5, 8), []string{us[1].Address})
	require.NoError(t, err)
	assert.Equal(t, 1, f.Open(99), "it counts by its name")
	assert.Equal(t, selection.AssumedCached, f.cache(f.members[us[0].Address], 8, start))
	assert.Equal(t, selection.Cached, f.cache(f.members[us[0].Address], 5, start))
	f.must(start, set(6, 7), nil).Cancel(start)
	a.Cancel(start)
	assert.Zero(t, f.Open(99))
	assert.Equal(t, selection.NotCached, f.cache(f.members[us[0].Address], 8, start))
}

// BenchmarkParts measures a claim and its end, for a job with one key and for a prompt of 24 blocks. Each upstream
// has half of them cached.
func BenchmarkParts(b *testing.B) {
	for _, n := range []int{14, 63} {
		for name, blocks := range map[string]int{"key": 1, "text": 24} {
			b.Run(fmt.Sprintf("%s/%d upstreams", name, n), func(b *testing.B) {
				f, us := newFixture(b, "expected", n), upstreams(n)
				numbers := make([]int, blocks)
				for i := range numbers {
					numbers[i] = i
				}
				r := chain(numbers...)
				for _, u := range us {
					f.Report(start, u.Address, report(start, 3, 0))
					half := f.prompts.Prompt(r.Data.Parts[:(blocks+1)/2])
					f.members[u.Address].cached.prompts.Send(start, f.prompts, half).Ended()
				}
				if blocks == 1 {
					r.Data = nil
				}
				b.ReportAllocs()
				for b.Loop() {
					a, err := f.Claim(start, r, nil)
					if err != nil {
						b.Fatal(err)
					}
					a.Answered(start, true, nil)
					a.Done(start, Answered)
					if blocks > 1 {
						a.missed(false)
					}
				}
			})
		}
	}
}
