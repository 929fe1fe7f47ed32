package admission

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// naive is the queue as one would say it: a slice in order of arrival.
type naive []*Entry

func (n naive) order() []*Entry {
	var out []*Entry
	for _, p := range []selection.Priority{selection.High, selection.Low} {
		for _, e := range n {
			if e.Priority == p {
				out = append(out, e)
			}
		}
	}
	return out
}

func (n naive) bytes() (sum int64) {
	for _, e := range n {
		sum += e.Bytes
	}
	return sum
}

func (n naive) push(e *Entry, cfg Config) (naive, []*Entry, bool) {
	fits := func(n naive) bool { return len(n) < cfg.Jobs && n.bytes()+e.Bytes <= cfg.Bytes }
	rest, shed := slices.Clone(n), []*Entry(nil)
	for e.Priority == selection.High && !fits(rest) {
		i := len(rest) - 1
		for i >= 0 && rest[i].Priority != selection.Low {
			i--
		}
		if i < 0 {
			break
		}
		shed = append(shed, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	if !fits(rest) {
		return n, nil, false
	}
	return append(rest, e), shed, true
}

func TestAgainstNaiveQueue(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		cfg := Config{Jobs: 1 + rng.IntN(20), Bytes: 1 + rng.Int64N(2000)}
		q, err := New(cfg)
		require.NoError(t, err)
		var n naive
		for range 500 {
			if rng.IntN(3) > 0 {
				e := &Entry{Priority: selection.Priority(rng.IntN(2)), Bytes: rng.Int64N(300)}
				next, wantShed, ok := n.push(e, cfg)
				shed, err := q.Push(e)
				require.Equal(t, ok, err == nil)
				require.Equal(t, wantShed, shed)
				n = next
			} else if len(n) > 0 {
				i := rng.IntN(len(n))
				require.True(t, q.Remove(n[i]))
				require.False(t, q.Remove(n[i]), "removed twice")
				n = slices.Delete(n, i, i+1)
			}
			require.Equal(t, n.order(), slices.Collect(q.All))
			require.Equal(t, len(n), q.Len())
			require.Equal(t, n.bytes(), q.Bytes())
		}
	}
}

func TestEntriesMayLeaveWhileListed(t *testing.T) {
	q, err := New(Config{})
	require.NoError(t, err)
	for range 10 {
		_, err := q.Push(&Entry{})
		require.NoError(t, err)
	}
	for e := range q.All {
		q.Remove(e)
	}
	assert.Zero(t, q.Len())
}

func TestHighWaitsBehindHighOnly(t *testing.T) {
	q, err := New(Config{})
	require.NoError(t, err)
	for _, p := range []selection.Priority{selection.Low, selection.Low, selection.High} {
		_, err := q.Push(&Entry{Priority: p})
		require.NoError(t, err)
	}
	assert.Equal(t, 1, q.Ahead(selection.High))
	assert.Equal(t, 3, q.Ahead(selection.Low))
}

// Serve asks until so many in a row are refused.
func TestServeStops(t *testing.T) {
	for name, c := range map[string]struct {
		answers      []Answer // repeated
		asked, stays int
	}{
		"all are served":                 {[]Answer{Served}, 1000, 0},
		"none can be":                    {[]Answer{Refused}, 8, 1000},
		"those passed over do not count": {[]Answer{PassedOver, PassedOver, Refused}, 24, 1000},
		"nor do the served":              {[]Answer{Refused, Served}, 1000, 500},
	} {
		t.Run(name, func(t *testing.T) {
			q, err := New(Config{})
			require.NoError(t, err)
			for range 1000 {
				_, err := q.Push(&Entry{})
				require.NoError(t, err)
			}
			asked := 0
			q.Serve(func(*Entry) Answer {
				asked++
				return c.answers[(asked-1)%len(c.answers)]
			})
			assert.Equal(t, c.asked, asked)
			assert.Equal(t, c.stays, q.Len())
		})
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	_, err := New(Config{Bytes: -1})
	assert.EqualError(t, err, "admission: Bytes -1 must not be negative")
}
