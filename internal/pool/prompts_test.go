package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/prompts"
	"example.org/pilotfish/pkg/selection"
)

// A prompt goes where it is read first: behind the prompts queued there, without what is cached.
func TestPromptsAreReadOneAtATime(t *testing.T) {
	f, us := newFixture(t, "expected", 2), upstreams(2)
	each := f.prompts.ReadTime(f.prompts.Prompt(chain(1).Data.Parts))
	at := func(now time.Time, address string) float64 { return f.members[address].cached.prompts.Wait(now) }
	claim := func(now time.Time, r Request) *Assignment { return f.must(now, r, nil) }
	for _, u := range us {
		f.Report(start, u.Address, report(start, 0, 0))
	}
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
	f.need(&c.need, &read, false)
	err := f.eligible(start, c, nil, nil, f.cfg.Rand)
	require.NoError(t, err)
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
	f, us := newFixture(t, "expected", 2), upstreams(2)
	for _, u := range us {
		f.Report(start, u.Address, report(start, 0, 0))
	}
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
	for _, u := range us {
		f.Report(start, u.Address, report(start, 0, 0))
	}
	for key := range 8 {
		prompt, u := chain(10*key, 10*key+1, 10*key+2), us[key%len(us)]
		change := prompts.Change{}
		for _, part := range prompt.Data.Parts {
			change.Stored = append(change.Stored, part.Key)
		}
		f.Changed(start, u.Address, []prompts.Change{change})
		a := f.must(start, prompt, nil)
		assert.Equal(t, u.Address, a.Address)
		assert.Equal(t, selection.Cached, a.Cache)
		a.Done(start, Answered)
	}
	f.Set(start, us[1:])
	f.Changed(start, us[0].Address, []prompts.Change{{Cleared: true}})
}
