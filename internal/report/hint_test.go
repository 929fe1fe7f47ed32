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

// unix is noon plus later, in the format of X-Load.
func unix(later time.Duration) string {
	return strconv.FormatFloat(float64(noon.Add(later).UnixMilli())/1e3, 'f', 3, 64)
}

const orcaHeader = "Endpoint-Load-Metrics"

// Each figure in each format is read. One invalid figure makes the whole hint invalid.
func TestHint(t *testing.T) {
	bare := pool.Hint{At: noon, Running: byPriority(1, 0), Stalled: byPriority(2, 0), Utilization: -1, CoresBusy: -1, Waited: -time.Second, Fetched: -time.Second}
	with := func(change func(*pool.Hint)) *pool.Hint {
		h := bare
		change(&h)
		return &h
	}
	full := &pool.Hint{
		At:      noon.Add(-250 * time.Millisecond),
		Running: byPriority(12, 0), Stalled: byPriority(2, 1), ByPriority: true, Utilization: 1.5, CoresBusy: 11,
		Cached: true, Known: true,
		Waited: 4 * time.Millisecond, Fetched: 1900 * time.Millisecond,
	}
	noCounts := with(func(h *pool.Hint) {
		h.Running, h.Stalled, h.Utilization = byPriority(-1, 0), byPriority(-1, 0), 0.5
	})
	const named = "named_metrics.running=12, named_metrics.stalled=3, named_metrics.stalled_high=1, named_metrics.busy=11, named_metrics.cached=1, " +
		"named_metrics.waited=0.004, named_metrics.fetch=1.9, named_metrics.other=-7, rps_fractional=NaN, named_metrics.=9"
	at := "named_metrics.at=" + unix(-250*time.Millisecond) + ", "
	for _, c := range []struct {
		name, line string
		want       *pool.Hint // nil: refused
	}{
		{"as specified", "at=" + unix(-250*time.Millisecond) + ", running=12, stalled=3, stalled_high=1, cores=16, busy=11, cached=1, waited=0.004, fetch=1.9, cpu_utilization=1.5", full},
		{"in another order, without spaces", "application_utilization=1.5,fetch=1.9,waited=0.004,cached=1,busy=11,stalled_high=1,stalled=3,running=12,at=" + unix(-250*time.Millisecond), full},
		{"ORCA's text", "TEXT cpu_utilization=0.75, application_utilization=1.5, " + at + named, full},
		{"without its name", "application_utilization=1.5, " + at + named, full},
		{"with colons", "text " + strings.ReplaceAll("application_utilization=1.5, "+at+named, "=", ":"), full},

		{"the least", "running=1, stalled=2", &bare},
		{"unknown keys", "running=1, moon=full, stalled=2, x=", &bare},
		{"the last counts", "running=9, stalled=2, running=1", &bare},
		{"not cached", "running=1, stalled=2, cached=0", with(func(h *pool.Hint) { h.Known = true })},
		{"a minute ago", "running=1, stalled=2, at=" + unix(-time.Minute), with(func(h *pool.Hint) { h.At = noon.Add(-time.Minute) })},
		{"longer ago", "running=1, stalled=2, at=" + unix(-time.Minute-time.Millisecond), &bare},
		{"in the future", "running=1, stalled=2, at=" + unix(time.Millisecond), &bare},
		{"at the beginning of time", "running=1, stalled=2, at=0", &bare},
		{"at the end of time", "running=1, stalled=2, at=1e308", &bare},
		{"no stalled", "running=1, stalled_high=1", with(func(h *pool.Hint) { h.Stalled = byPriority(-1, 0) })},
		{"no running", "stalled=2, stalled_high=2", with(func(h *pool.Hint) { h.Running, h.Stalled, h.ByPriority = byPriority(-1, 0), byPriority(0, 2), true })},
		{"of the processors", "TEXT cpu_utilization=0.5", noCounts},
		{"rather of the application", "TEXT application_utilization=0.5, cpu_utilization=0.25", noCounts},

		{"empty", "", nil},
		{"a form alone", "TEXT", nil},
		{"garbage", "hello", nil},
		{"a pair without a value", "running=1, stalled=2, cached", nil},
		{"a comma too many", "running=1, stalled=2,", nil},
		{"no load", "cached=1, mem_utilization=0.5, stalled_high=1", nil},
		{"negative", "running=-1, stalled=2", nil},
		{"NaN", "running=NaN, stalled=2", nil},
		{"infinite", "running=1, stalled=Inf", nil},
		{"absurd", "running=1e13, stalled=2", nil},
		{"no number", "running=1, stalled=two", nil},
		{"no time", "running=1, stalled=2, at=now", nil},
		{"more high than all", "running=1, stalled=2, stalled_high=3", nil},
		{"half cached", "running=1, stalled=2, cached=0.5", nil},
		{"twice cached", "running=1, stalled=2, cached=2", nil},
		{"JSON", `JSON {"cpu_utilization":0.5,"named_metrics":{"running":1}}`, nil},
		{"an endless wait", "running=1, stalled=2, waited=1e12", nil},
		{"too busy", "TEXT cpu_utilization=1e7", nil},
		{"too long", "running=1, stalled=2, x=" + strings.Repeat("x", 8<<10), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, header := range loadHeaders {
				got, ok := Default().Hint(http.Header{header: {c.line}}, noon)
				require.Equal(t, c.want != nil, ok)
				if c.want == nil {
					assert.Zero(t, got)
					continue
				}
				assert.WithinDuration(t, c.want.At, got.At, time.Microsecond)
				got.At = c.want.At
				assert.Equal(t, *c.want, got)
			}
		})
	}
}

// A named metric can have the name from the settings without its prefix.
func TestNamesOfORCAMetrics(t *testing.T) {
	s := Default()
	s.Names.Running, s.Names.Stalled = "vllm:num_requests_running * 2", `vllm:num_requests_waiting{model_name="llama"}`
	hint, ok := s.Hint(http.Header{orcaHeader: {"TEXT named_metrics.num_requests_running=7, named_metrics.num_requests_waiting=9"}}, noon)
	require.True(t, ok)
	assert.Equal(t, byPriority(7, 0), hint.Running)
	assert.Equal(t, byPriority(9, 0), hint.Stalled)
}

func TestOneHeaderCounts(t *testing.T) {
	h := http.Header{orcaHeader: {"TEXT named_metrics.running=1"}, "X-Load": {"running=5, stalled=0"}}
	hint, ok := Default().Hint(h, noon)
	require.True(t, ok)
	assert.Equal(t, byPriority(5, 0), hint.Running, "X-Load says more")
	h["X-Load"] = []string{"running=a lot, stalled=0"}
	_, ok = Default().Hint(h, noon)
	assert.False(t, ok, "an upstream that talks nonsense is not believed elsewhere")
	for _, h := range []http.Header{nil, {"X-Load": nil}, {"X-Load": {"running=1", "running=1"}}, {orcaHeader: {"running=1", "running=1"}}} {
		_, ok := Default().Hint(h, noon)
		assert.False(t, ok, "%v", h)
	}
}

func TestHintDoesNotAllocate(t *testing.T) {
	h := http.Header{"X-Load": {"at=1763677245.123, running=12, stalled=3, stalled_high=0, cores=16, cached=1, waited=0.004, fetch=1.9"}}
	s, ok := Default(), true
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_, parsed := s.Hint(h, noon)
		ok = ok && parsed
	}))
	assert.True(t, ok)
}

// FuzzHint compares with a naive reader of the same pairs, and checks the bounds of accepted
// hints.
func FuzzHint(f *testing.F) {
	f.Add("at=1763640000.5, running=12, stalled=3, stalled_high=0, cores=16, cached=1, waited=0.004, fetch=1.9")
	f.Add("running=1,stalled=0x1p-2")
	f.Add("running=1, stalled=nan, cached=0")
	f.Add("running=1, stalled=2, at=1763639999")
	f.Add("TEXT cpu_utilization=0.75, named_metrics.running=12, named_metrics.stalled=4, named_metrics.stalled_high=1")
	f.Fuzz(func(t *testing.T, line string) {
		got, ok := Default().Hint(http.Header{"X-Load": {line}}, noon)
		require.False(t, got.At.After(noon))
		if !ok {
			require.Zero(t, got)
		} else {
			require.False(t, got.At.Before(noon.Add(-time.Minute)))
			reported := false
			for _, figure := range []float64{got.Running[0], got.Stalled[0], got.Stalled[1], got.Utilization} {
				require.True(t, figure >= -1 && figure <= maxCount, "%v", figure)
				reported = reported || figure >= 0
			}
			require.True(t, reported)
		}
		if !strings.ContainsAny(line, "{:._ ") {
			want, sound := naiveHint(line)
			require.Equal(t, sound, ok)
			require.Equal(t, want, got)
		}
	})
}

// naiveHint reads pairs without spaces that contain the counts.
func naiveHint(line string) (pool.Hint, bool) {
	most := map[string]float64{
		"at": math.MaxFloat64, "running": 1e12, "stalled": 1e12, "busy": 1e12, "cached": 1, "waited": math.MaxInt32, "fetch": math.MaxInt32,
	}
	values := map[string]float64{"at": -1, "running": -1, "stalled": -1, "busy": -1, "cached": -1, "waited": -1, "fetch": -1}
	for _, text := range strings.Split(strings.TrimSpace(line), ",") {
		words := strings.SplitN(text, "=", 2)
		if len(words) != 2 {
			return pool.Hint{}, false
		}
		name := strings.TrimSpace(words[0])
		limit, known := most[name]
		if !known {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(words[1]), 64)
		if err != nil || math.IsNaN(x) || x < 0 || x > limit {
			return pool.Hint{}, false
		}
		values[name] = x
	}
	cached := values["cached"]
	if len(line) > maxHintBytes || values["running"] < 0 && values["stalled"] < 0 || cached != -1 && cached != 0 && cached != 1 {
		return pool.Hint{}, false
	}
	h := pool.Hint{
		At: noon, Utilization: -1, CoresBusy: values["busy"], Running: byPriority(values["running"], 0), Stalled: byPriority(values["stalled"], 0),
		Cached: cached == 1, Known: cached != -1,
		Waited:  time.Duration(values["waited"] * 1e9),
		Fetched: time.Duration(values["fetch"] * 1e9),
	}
	if age := float64(noon.Unix()) - values["at"]; age > 0 && age <= 60 {
		h.At = noon.Add(-time.Duration(age * 1e9))
	}
	return h, true
}
