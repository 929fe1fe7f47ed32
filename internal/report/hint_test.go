package report

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/pool"
)

// unix is noon plus later, written as in X-Load.
func unix(later time.Duration) string {
	return strconv.FormatFloat(float64(noon.Add(later).UnixMilli())/1e3, 'f', 3, 64)
}

func TestParseHint(t *testing.T) {
	full := pool.Hint{
		At:      noon.Add(-250 * time.Millisecond),
		Running: byPriority(12, 0), Stalled: byPriority(2, 1), Utilization: -1,
		Cached: true, Known: true,
		Waited: 4 * time.Millisecond, Fetched: 1900 * time.Millisecond,
	}
	bare := pool.Hint{At: noon, Running: byPriority(1, 0), Stalled: byPriority(2, 0), Utilization: -1, Waited: -time.Second, Fetched: -time.Second}
	with := func(change func(*pool.Hint)) *pool.Hint {
		h := bare
		change(&h)
		return &h
	}
	for _, c := range []struct {
		name, line string
		want       *pool.Hint // nil: refused
	}{
		{"as specified", "at=" + unix(-250*time.Millisecond) + ", running=12, stalled=3, stalled_high=1, cores=16, cached=1, waited=0.004, fetch=1.9", &full},
		{"in another order, without spaces", "fetch=1.9,waited=0.004,cached=1,stalled_high=1,stalled=3,running=12,at=" + unix(-250*time.Millisecond), &full},
		{"the least", "running=1, stalled=2", &bare},
		{"unknown keys", "running=1, moon=full, stalled=2, x=", &bare},
		{"the last counts", "running=9, stalled=2, running=1", &bare},
		{"not cached", "running=1, stalled=2, cached=0", with(func(h *pool.Hint) { h.Known = true })},
		{"a minute ago", "running=1, stalled=2, at=" + unix(-time.Minute), with(func(h *pool.Hint) { h.At = noon.Add(-time.Minute) })},
		{"longer ago", "running=1, stalled=2, at=" + unix(-time.Minute-time.Millisecond), &bare},
		{"in the future", "running=1, stalled=2, at=" + unix(time.Millisecond), &bare},
		{"at the beginning of time", "running=1, stalled=2, at=0", &bare},
		{"at the end of time", "running=1, stalled=2, at=1e308", &bare},

		{"empty", "", nil},
		{"garbage", "hello", nil},
		{"a pair without a value", "running=1, stalled=2, cached", nil},
		{"a comma too many", "running=1, stalled=2,", nil},
		{"no running", "stalled=2", nil},
		{"no stalled", "running=1", nil},
		{"negative", "running=-1, stalled=2", nil},
		{"NaN", "running=NaN, stalled=2", nil},
		{"infinite", "running=1, stalled=Inf", nil},
		{"absurd", "running=1e13, stalled=2", nil},
		{"no number", "running=1, stalled=two", nil},
		{"no time", "running=1, stalled=2, at=now", nil},
		{"more high than all", "running=1, stalled=2, stalled_high=3", nil},
		{"half cached", "running=1, stalled=2, cached=0.5", nil},
		{"twice cached", "running=1, stalled=2, cached=2", nil},
		{"an endless wait", "running=1, stalled=2, waited=1e12", nil},
		{"too long", "running=1, stalled=2, x=" + strings.Repeat("x", 1024), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := parseHint(http.Header{"X-Load": {c.line}}, noon)
			require.Equal(t, c.want != nil, ok)
			if c.want == nil {
				assert.Zero(t, got)
				return
			}
			assert.WithinDuration(t, c.want.At, got.At, time.Microsecond)
			got.At = c.want.At
			assert.Equal(t, *c.want, got)
		})
	}
}

func TestParseHintNeedsOneLine(t *testing.T) {
	for _, h := range []http.Header{nil, {}, {"X-Load": nil}, {"X-Load": {"running=1, stalled=2", "running=1, stalled=2"}}} {
		_, ok := parseHint(h, noon)
		assert.False(t, ok, "%v", h)
	}
}

func TestParseHintDoesNotAllocate(t *testing.T) {
	h := http.Header{"X-Load": {"at=1763677245.123, running=12, stalled=3, stalled_high=0, cores=16, cached=1, waited=0.004, fetch=1.9"}}
	ok := true
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_, parsed := parseHint(h, noon)
		ok = ok && parsed
	}))
	assert.True(t, ok)
}

// FuzzParseHint compares with a naive reader of the same pairs.
func FuzzParseHint(f *testing.F) {
	f.Add("at=1763640000.5, running=12, stalled=3, stalled_high=0, cores=16, cached=1, waited=0.004, fetch=1.9")
	f.Add("running=1,stalled=0x1p-2")
	f.Add("running=1, stalled=nan, cached=0")
	f.Add("running=1, stalled=2, at=1763639999")
	f.Fuzz(func(t *testing.T, line string) {
		want, ok := naiveHint(line)
		got, parsed := parseHint(http.Header{"X-Load": {line}}, noon)
		require.Equal(t, ok, parsed)
		require.False(t, got.At.After(noon))
		require.False(t, ok && got.At.Before(noon.Add(-time.Minute)))
		require.Equal(t, want, got)
	})
}

func naiveHint(line string) (pool.Hint, bool) {
	most := map[string]float64{
		"at": math.MaxFloat64, "running": 1e12, "stalled": 1e12, "stalled_high": 1e12, "cached": 1,
		"waited": math.MaxInt32, "fetch": math.MaxInt32,
	}
	values := map[string]float64{"at": -1, "stalled_high": 0, "cached": -1, "waited": -1, "fetch": -1}
	for _, text := range strings.Split(line, ",") {
		words := strings.SplitN(strings.TrimSpace(text), "=", 2)
		if len(words) != 2 {
			return pool.Hint{}, false
		}
		limit, known := most[words[0]]
		if !known {
			continue
		}
		x, err := strconv.ParseFloat(words[1], 64)
		if err != nil || math.IsNaN(x) || x < 0 || x > limit {
			return pool.Hint{}, false
		}
		values[words[0]] = x
	}
	running, hasRunning := values["running"]
	stalled, hasStalled := values["stalled"]
	high, cached := values["stalled_high"], values["cached"]
	if len(line) > 1024 || !hasRunning || !hasStalled || high > stalled || (cached != -1 && cached != 0 && cached != 1) {
		return pool.Hint{}, false
	}
	h := pool.Hint{
		At: noon, Utilization: -1, Running: byPriority(running, 0), Stalled: byPriority(stalled-high, high),
		Cached: cached == 1, Known: cached != -1,
		Waited:  time.Duration(values["waited"] * 1e9),
		Fetched: time.Duration(values["fetch"] * 1e9),
	}
	if age := float64(noon.Unix()) - values["at"]; age > 0 && age <= 60 {
		h.At = noon.Add(-time.Duration(age * 1e9))
	}
	return h, true
}
