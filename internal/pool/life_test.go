package pool

import (
	"container/list"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// lru is a cache of blocks as a model server has it.
type lru struct {
	size  int
	order list.List // of keys, the latest first
	at    map[uint64]*list.Element
}

// read returns how many blocks of a text were there, from the first on; then all are.
func (c *lru) read(keys []uint64) (found int) {
	for found < len(keys) && c.at[keys[found]] != nil {
		found++
	}
	for i := len(keys) - 1; i >= 0; i-- {
		if e := c.at[keys[i]]; e != nil {
			c.order.MoveToFront(e)
		} else {
			c.at[keys[i]] = c.order.PushFront(keys[i])
		}
		if c.order.Len() > c.size {
			delete(c.at, c.order.Remove(c.order.Back()).(uint64))
		}
	}
	return found
}

// Of what a small cache has forgotten, little is taken to be there once jobs have told what they found; without
// their word, all of it is.
func TestJobsTellWhatACacheForgets(t *testing.T) {
	wrong := func(size int, told bool) (share float64, lives life) {
		f := newFixture(t, "random", 1)
		m, cache := f.set[0], &lru{size: size, at: map[uint64]*list.Element{}}
		rng, now := rand.New(rand.NewPCG(3, 4)), start
		off, all := 0, 0
		for step := range 4000 {
			now = now.Add(time.Second)
			chat := rng.IntN(60)
			r := chain(1000, 2000+chat, 1, 2, 3, 4)
			var keys []uint64
			for _, part := range r.Data.Parts {
				keys = append(keys, part.Key)
			}
			a, err := f.Claim(now, r, nil)
			require.NoError(t, err)
			found := cache.read(keys)
			if step > 2000 {
				all += len(keys)
				off += max(found-a.first, a.first-found)
			}
			a.Answered(now, true, nil)
			if told {
				a.Found(float64(found) / float64(len(keys)))
			}
			a.Done(now, Answered)
		}
		return float64(off) / float64(all), m.life
	}
	off, lives := wrong(100, true) // 20 of the 60 chats
	assert.Less(t, off, 0.25)
	assert.Greater(t, lives, life(5*time.Second))
	assert.Less(t, lives, life(60*time.Second))
	blind, _ := wrong(100, false)
	assert.Greater(t, blind, 0.4)
	off, lives = wrong(1000, true)
	assert.Zero(t, off)
	assert.Zero(t, lives, "nothing was ever forgotten")
}

// What a job says counts for nothing where it is no share, or the job has no text.
func TestNonsenseFound(t *testing.T) {
	f := newFixture(t, "random", 1)
	claim := func(r Request, at time.Time) *Assignment {
		a, err := f.Claim(at, r, nil)
		require.NoError(t, err)
		return a
	}
	claim(chain(1, 2, 3, 4), start).Answered(start, true, nil)
	later := start.Add(time.Minute)
	a := claim(chain(1, 2, 3, 4), later)
	a.Found(-1)
	a.Found(1.01)
	claim(Request{Project: 5}, later).Found(0)
	assert.Zero(t, f.set[0].life)
	a.Found(0)
	assert.Equal(t, life(time.Minute), f.set[0].life)
	assert.Equal(t, selection.NotCached, f.cache(f.set[0], chain(1).Project, later.Add(61*time.Second)))
}
