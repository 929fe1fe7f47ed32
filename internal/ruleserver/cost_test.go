package ruleserver

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/ruleserver/executor"
)

func TestParseCost(t *testing.T) {
	c, err := ParseCost("fetch=2s+40ms/MiB,shared=400ms,operators=800ms+5us/item,output=100ms,tail=1.5,seed=7")
	require.NoError(t, err)
	assert.Equal(t, Cost{
		fetch:     jobletCost{base: 2 * time.Second, perMiB: 40 * time.Millisecond},
		shared:    jobletCost{base: 400 * time.Millisecond},
		operators: jobletCost{base: 800 * time.Millisecond, perItem: 5 * time.Microsecond},
		output:    jobletCost{base: 100 * time.Millisecond},
		tail:      1.5,
		seed:      7,
	}, c)
	c, err = ParseCost("fetch=1us/item+2s/MiB")
	require.NoError(t, err)
	assert.Equal(t, Cost{fetch: jobletCost{perItem: time.Microsecond, perMiB: 2 * time.Second}}, c)
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
		fetch:  jobletCost{base: time.Second, perMiB: 2 * time.Second},
		output: jobletCost{perItem: time.Millisecond},
	}
	assert.Equal(t, 7*time.Second, c.of(executor.FeedSource, "p", 10, 3<<20))
	assert.Equal(t, 10*time.Millisecond, c.of(executor.OutputFeed, "p", 10, 3<<20))
	assert.Zero(t, c.of(executor.Operators, "p", 10, 3<<20))
	huge := Cost{fetch: jobletCost{base: 1 << 62, perItem: 1 << 62}}
	assert.Positive(t, huge.of(executor.FeedSource, "p", 1<<40, 0), "no overflow")
}

// TestTail: factors have the mean 1, are heavy-tailed and belong to the project.
func TestTail(t *testing.T) {
	c := Cost{tail: 2.5, seed: 7}
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
	assert.NotEqual(t, c.factor("1"), Cost{tail: 2.5, seed: 8}.factor("1"))
	assert.InDelta(t, 1, Cost{}.factor("1"), 0)

	heaviest := 0.0
	for i := range 300_000 {
		heaviest = max(heaviest, Cost{tail: 1.5}.factor(fmt.Sprint(i)))
	}
	assert.Equal(t, float64(maxTailFactor), heaviest)
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

func TestJobsBringTheirOwnCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := costHeader + ": fetch=7s,output=100ms"
		server := Cost{fetch: jobletCost{base: time.Second}}
		for name, c := range map[string]struct {
			trust   bool
			options []string
			want    time.Duration
		}{
			"its own":              {true, []string{own}, 7100 * time.Millisecond},
			"none of its own":      {true, nil, time.Second},
			"nobody trusts it":     {false, []string{own}, time.Second},
			"nobody even reads it": {false, []string{costHeader + ": nonsense"}, time.Second},
		} {
			s := newServer(t, func(config *Config) { config.Settings.Cost, config.Settings.TrustCost = server, c.trust })
			begin := time.Now()
			w := do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 12345}`, c.options...)
			require.Equal(t, http.StatusOK, w.Code, name)
			assert.Equal(t, c.want, time.Since(begin), name)
			s.Close()
		}
	})
}

func TestCostOfItsOwnThatMakesNoSense(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Settings.TrustCost = true })
	w := do(s, t.Context(), "POST", "/v1/jobs", `{"project_id": 12345}`, costHeader+": fetch=much")
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.JSONEq(t, `{"type": "urn:ruleserver:malformed-cost", "status": 400,
		"detail": "header X-Cost: cost: fetch: want a duration such as 2s or 400ms, got \"much\""}`, w.Body.String())
}
