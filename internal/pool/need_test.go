package pool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/hash"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/prompts"
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
		read := map[string]map[string]bool{}
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
			r := chain(blocks...)
			a := f.must(now, r, nil)
			placed := slices.IndexFunc(r.Data.Parts, func(part intake.Part) bool { return part.Key == a.project.id })
			var n need
			f.fillNeed(&n, &r, false)
			had := 0
			for _, m := range f.set {
				held := 0
				for held < len(blocks) && (read[m.Address][upTo(held)] || m == a.member) {
					held++
				}
				found, _ := m.cached.lookUp(now, &n, f.cfg.Interval)
				require.InDelta(t, 0.95*float64(held)/float64(len(blocks)), found.share, 1e-9)
				require.Equal(t, held > placed, found.status == selection.AssumedCached)
				if m == a.member {
					for had < len(blocks) && read[m.Address][upTo(had)] {
						had++
					}
					require.InDelta(t, 0.95*float64(had)/float64(len(blocks)), a.found.share, 1e-9)
				}
			}
			o := []Outcome{Answered, NotStarted, Refused}[rng.IntN(3)]
			switch o {
			case Answered:
				a.Answered(now, true, nil)
				for i := range blocks {
					read[a.Address][upTo(i)] = true
				}
			case Refused: // nothing of it is there any more
				for i := range blocks {
					delete(read[a.Address], upTo(i))
				}
			default:
				for i := range blocks[had:] { // what follows a gap was there and is not known now
					delete(read[a.Address], upTo(had+i))
				}
			}
			a.Done(now, o)
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
		f.fillNeed(&c.need, &r, true)
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
	f.fillNeed(&n, &r, false)
	assert.InDelta(t, f.fetches.expected(9e6), f.fetch(&n), 1e-9, "its price is that of the first")
	shares, _ = warm(set(5, 6, 7, 8))
	assert.InDeltaSlice(t, []float64{0.5, 0.25}, shares, 1e-9, "by number")

	a := f.must(start, set(5, 8), []string{us[1].Address})
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
						a.dropAssumed(false)
					}
				}
			})
		}
	}
}

// A prompt goes where it is read first: behind the prompts queued there, without what is cached.
func TestPromptsAreReadOneAtATime(t *testing.T) {
	f, us := newFixture(t, "expected", 2), upstreams(2)
	each := f.prompts.ReadTime(f.prompts.Prompt(chain(1).Data.Parts))
	at := func(now time.Time, address string) float64 { return f.members[address].cached.prompts.Wait(now) }
	claim := func(now time.Time, r Request) *Assignment { return f.must(now, r, nil) }
	f.allIdle(start)
	long := claim(start, chain(1, 2, 3, 4))
	assert.InDelta(t, 4*each, at(start, long.Address), 1e-9)
	assert.Zero(t, f.prompts.QueuedBehind())
	other := claim(start, chain(1, 2))
	assert.NotEqual(t, long.Address, other.Address, "half of it is there, behind four blocks")
	same := claim(start, chain(1, 2, 3, 5, 6, 7, 8, 9))
	assert.Equal(t, other.Address, same.Address, "two blocks there behind two to read are better than three behind four")
	assert.InDelta(t, (2+8-1.9)*each, at(start, other.Address), 1e-9)
	mean := (4 + 2 + 8 - 1.9) / 3
	assert.InDelta(t, 2/mean/3, f.prompts.QueuedBehind(), 1e-9, "two blocks were read before one of three jobs")
	c, read := &candidates{}, chain(1)
	f.fillNeed(&c.need, &read, false)
	require.NoError(t, f.eligible(start, c, nil, nil, f.cfg.Rand))
	assert.True(t, c.job.Prompt)
	assert.Equal(t, f.prompts.QueuedBehind(), c.job.QueuedBehind)
	assert.InDelta(t, each, c.job.Fetch, 1e-9)
	assert.NotZero(t, c.views[0].PrefillWait)

	now := start.Add(seconds(3 * each))
	assert.InDelta(t, 4*each, at(now, long.Address), 1e-9, "it has no response")
	other.Answered(now, true, nil)
	assert.InDelta(t, (8-1.9)*each, at(now, other.Address), 1e-9, "nor is this one")
	long.Done(now, Refused)
	assert.Zero(t, at(now, long.Address), "nothing is read for it")
	same.Answered(now, true, nil)
	assert.Zero(t, at(now, same.Address), "it was read sooner than expected")
	r := report(now.Add(time.Second), 0, 3)
	f.Report(now, us[0].Address, r)
	assert.InDelta(t, 3*mean*each, at(r.At, us[0].Address), 1e-9, "others' prompts")
}

// The cached share in a response counts only for prompts, at the first-ranked upstream.
func TestFound(t *testing.T) {
	f := newFixture(t, "expected", 2)
	f.allIdle(start)
	f.must(start, Request{Project: 5}, nil).Found(0.5)
	assert.Zero(t, f.prompts.FirstPlaceHitRate(), "it is no prompt")
	f.must(start, chain(1, 2, 3, 4), nil).Found(0.5)
	assert.Equal(t, 0.5, f.prompts.FirstPlaceHitRate())
	elsewhere := 0
	for key := range 20 {
		a, was := f.must(start, chain(100+key), nil), f.prompts.FirstPlaceHitRate()
		a.Found(1)
		assert.Equal(t, a.Cost.Placement == 0, f.prompts.FirstPlaceHitRate() > was)
		if a.Cost.Placement > 0 {
			elsewhere++
		}
	}
	assert.Positive(t, elsewhere)
	over, was := f.must(start, chain(1000), nil), f.prompts.FirstPlaceHitRate()
	over.Done(start, Answered)
	over.Found(0)
	assert.Equal(t, was, f.prompts.FirstPlaceHitRate(), "it is over")
}

// A prompt goes where events show it to be cached; events of an upstream that has left change nothing.
func TestEventsOfACache(t *testing.T) {
	f, us := newFixture(t, "expected", 4), upstreams(4)
	f.allIdle(start)
	for key := range 8 {
		prompt, u := chain(10*key, 10*key+1, 10*key+2), us[key%len(us)]
		change := prompts.Change{}
		for _, part := range prompt.Data.Parts {
			change.Stored = append(change.Stored, part.Key)
		}
		f.CacheChanged(start, u.Address, []prompts.Change{change})
		a := f.must(start, prompt, nil)
		assert.Equal(t, u.Address, a.Address)
		assert.Equal(t, selection.Cached, a.Cache)
		a.Done(start, Answered)
	}
	f.Set(start, us[1:])
	f.CacheChanged(start, us[0].Address, []prompts.Change{{Cleared: true}})
}
