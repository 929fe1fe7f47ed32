package ruleserver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/ruleserver/executor"
)

func TestParseCost(t *testing.T) {
	c, err := ParseCost("fetch=2s+40ms/MiB,shared=400ms,operators=800ms+5us/item,output=100ms,tail=1.5,seed=7")
	require.NoError(t, err)
	assert.Equal(t, Cost{
		Fetch:     JobletCost{Base: 2 * time.Second, PerMiB: 40 * time.Millisecond},
		Shared:    JobletCost{Base: 400 * time.Millisecond},
		Operators: JobletCost{Base: 800 * time.Millisecond, PerItem: 5 * time.Microsecond},
		Output:    JobletCost{Base: 100 * time.Millisecond},
		Tail:      1.5,
		Seed:      7,
	}, c)
	c, err = ParseCost("fetch=1us/item+2s/MiB")
	require.NoError(t, err)
	assert.Equal(t, Cost{Fetch: JobletCost{PerItem: time.Microsecond, PerMiB: 2 * time.Second}}, c)
	c, err = ParseCost("")
	require.NoError(t, err)
	assert.Zero(t, c)
}

func TestParseCostSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"fetch":             `cost: fetch: want a duration such as 2s or 400ms, got ""`,
		"fetch=2":           `cost: fetch: want a duration such as 2s or 400ms, got "2"`,
		"fetch=-2s":         `cost: fetch: want a duration such as 2s or 400ms, got "-2s"`,
		"fetch=2s+3s":       `cost: fetch: want DURATION, DURATION/item or DURATION/MiB, got "3s"`,
		"fetch=2s/row":      `cost: fetch: want DURATION, DURATION/item or DURATION/MiB, got "2s/row"`,
		"load=2s":           `cost: load: unknown; known are fetch, shared, operators, output, tail, seed`,
		"fetch=2s,fetch=3s": `cost: fetch is given twice`,
		"tail=1":            `cost: tail: want a number greater than 1, got "1"`,
		"tail=NaN":          `cost: tail: want a number greater than 1, got "NaN"`,
		"tail=Inf":          `cost: tail: want a number greater than 1, got "Inf"`,
		"seed=-1":           `cost: seed: want a whole number, got "-1"`,
	} {
		_, err := ParseCost(text)
		assert.EqualError(t, err, want)
	}
}

func TestCostOf(t *testing.T) {
	c := Cost{
		Fetch:  JobletCost{Base: time.Second, PerMiB: 2 * time.Second},
		Output: JobletCost{PerItem: time.Millisecond},
	}
	assert.Equal(t, 7*time.Second, c.of(executor.FeedSource, "p", 10, 3<<20))
	assert.Equal(t, 10*time.Millisecond, c.of(executor.OutputFeed, "p", 10, 3<<20))
	assert.Zero(t, c.of(executor.Operators, "p", 10, 3<<20))
	huge := Cost{Fetch: JobletCost{Base: 1 << 62, PerItem: 1 << 62}}
	assert.Positive(t, huge.of(executor.FeedSource, "p", 1<<40, 0), "no overflow")
}

// TestTail: factors have the mean 1, are heavy-tailed and belong to the project.
func TestTail(t *testing.T) {
	c := Cost{Tail: 2.5, Seed: 7}
	sum, beyond := 0.0, 0
	const projects = 100_000
	for i := range projects {
		f := c.factor(fmt.Sprint(i))
		if f < 0.6 || f != c.factor(fmt.Sprint(i)) { // 0.6 is the least value of this distribution
			t.Fatalf("project %d: factor %v, then %v", i, f, c.factor(fmt.Sprint(i)))
		}
		sum += f
		if f > 6 { // P = (0.6/6)^2.5
			beyond++
		}
	}
	assert.InDelta(t, 1, sum/projects, 0.02)
	assert.InDelta(t, 0.00316, float64(beyond)/projects, 0.0006)
	assert.NotEqual(t, c.factor("1"), Cost{Tail: 2.5, Seed: 8}.factor("1"))
	assert.InDelta(t, 1, Cost{}.factor("1"), 0)
}

func FuzzParseCost(f *testing.F) {
	f.Add("fetch=2s+40ms/MiB,tail=1.5,seed=7")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCost(text)
		if err == nil {
			require.GreaterOrEqual(t, c.of(executor.FeedSource, "p", 1<<30, 1<<40), time.Duration(0))
		}
	})
}
