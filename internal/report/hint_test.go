package report

import (
	"cmp"
	"fmt"
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

// Each figure is read in each format.
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
		want       *pool.Hint
	}{
		{"as specified", "at=" + unix(-250*time.Millisecond) + ", running=12, stalled=3, stalled_high=1, cores=16, busy=11, cached=1, waited=0.004, fetch=1.9, cpu_utilization=1.5", full},
		{"in another order, without spaces", "application_utilization=1.5,fetch=1.9,waited=0.004,cached=1,busy=11,stalled_high=1,stalled=3,running=12,at=" + unix(-250*time.Millisecond), full},
		{"ORCA's text", "TEXT cpu_utilization=0.75, application_utilization=1.5, " + at + named, full},
		{"without its name", "application_utilization=1.5, " + at + named, full},
		{"with spaces around", "  TEXT cpu_utilization=0.5 ", noCounts},
		{"with colons", "text " + strings.ReplaceAll("application_utilization=1.5, "+at+named, "=", ":"), full},

		{"the least", "running=1, stalled=2", &bare},
		{"unknown keys", "running=1, moon=full, stalled=2, x=", &bare},
		{"the last counts", "running=9, stalled=2, running=1", &bare},
		{"not cached", "running=1, stalled=2, cached=0", with(func(h *pool.Hint) { h.Known = true })},
		{"a minute ago", "running=1, stalled=2, at=" + unix(-time.Minute), with(func(h *pool.Hint) { h.At = noon.Add(-time.Minute) })},
		{"longer ago", "running=1, stalled=2, at=" + unix(-time.Minute-time.Millisecond), &bare},
		{"in the future", "running=1, stalled=2, at=" + unix(time.Millisecond), &bare},
		{"at the end of time", "running=1, stalled=2, at=1e308", &bare},
		{"no stalled", "running=1, stalled_high=1", with(func(h *pool.Hint) { h.Stalled = byPriority(-1, 0) })},
		{"no running", "stalled=2, stalled_high=2", with(func(h *pool.Hint) { h.Running, h.Stalled, h.ByPriority = byPriority(-1, 0), byPriority(0, 2), true })},
		{"rather of the application", "TEXT application_utilization=0.5, cpu_utilization=0.25", noCounts},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, header := range loadHeaders {
				got, err := Default().Hint(http.Header{header: {c.line}}, noon)
				require.NoError(t, err)
				assert.WithinDuration(t, c.want.At, got.At, time.Microsecond)
				got.At = c.want.At
				assert.Equal(t, *c.want, got)
			}
		})
	}
}

// The error says what is wrong with a load header. A response without one is no fault.
func TestInvalidHints(t *testing.T) {
	for line, want := range map[string]string{
		"":                                     `"" is not key=value`,
		"TEXT":                                 `"TEXT" is not key=value`,
		"running=1, stalled=2, cached":         `" cached" is not key=value`,
		`JSON {"cpu_utilization":0.5}`:         "it has neither running nor stalled nor a utilization",
		"running=-1, stalled=2":                `"running=-1": want a number from 0 to 1e+12`,
		"running=NaN, stalled=2":               `"running=NaN": want a number from 0 to 1e+12`,
		"running=1, stalled=Inf":               `" stalled=Inf": want a number from 0 to 1e+12`,
		"running=1e13, stalled=2":              `"running=1e13": want a number from 0 to 1e+12`,
		"running=two":                          `"running=two": want a number from 0 to 1e+12`,
		"running=1, at=now":                    `" at=now": want a number from 0 to 1.7976931348623157e+308`,
		"running=1, cached=2":                  `" cached=2": want a number from 0 to 1`,
		"running=1, waited=1e12":               `" waited=1e12": want a number from 0 to 2.147483647e+09`,
		"TEXT cpu_utilization=1e7":             `"cpu_utilization=1e7": want a number from 0 to 1e+06`,
		"cached=1, stalled_high=1":             "it has neither running nor stalled nor a utilization",
		"running=1, stalled=1, stalled_high=2": "stalled_high is more than stalled",
		"running=1, cached=0.5":                "cached is neither 0 nor 1",
		"running=1, x=" + strings.Repeat("x", maxHintBytes): "it is longer than 8192 bytes",
	} {
		for _, header := range loadHeaders {
			got, err := Default().Hint(http.Header{header: {line}}, noon)
			assert.EqualError(t, err, header+": "+want)
			assert.Zero(t, got, line)
		}
	}
	for _, header := range loadHeaders {
		_, err := Default().Hint(http.Header{header: {"running=1", "running=1"}}, noon)
		assert.EqualError(t, err, header+": it is there more than once")
	}
}

// A named metric can have the name from the settings without its prefix.
func TestNamesOfORCAMetrics(t *testing.T) {
	s := Default()
	s.Names.Running, s.Names.Stalled = "vllm:num_requests_running * 2", `vllm:num_requests_waiting{model_name="llama"}`
	hint, err := s.Hint(http.Header{orcaHeader: {"TEXT named_metrics.num_requests_running=7, named_metrics.num_requests_waiting=9"}}, noon)
	require.NoError(t, err)
	assert.Equal(t, byPriority(7, 0), hint.Running)
	assert.Equal(t, byPriority(9, 0), hint.Stalled)
}

func TestOneHeaderCounts(t *testing.T) {
	h := http.Header{orcaHeader: {"TEXT named_metrics.running=1"}, "X-Load": {"running=5, stalled=0"}}
	hint, err := Default().Hint(h, noon)
	require.NoError(t, err)
	assert.Equal(t, byPriority(5, 0), hint.Running, "X-Load says more")
	h["X-Load"] = []string{"running=a lot, stalled=0"}
	_, err = Default().Hint(h, noon)
	assert.Error(t, err, "an upstream with an invalid header is not believed elsewhere")
	for _, h := range []http.Header{nil, {"X-Load": nil}} {
		_, err := Default().Hint(h, noon)
		assert.Equal(t, errNoLoad, err)
	}
}

func TestHintDoesNotAllocate(t *testing.T) {
	h := http.Header{"X-Load": {"at=1763677245.123, running=12, stalled=3, stalled_high=0, cores=16, cached=1, waited=0.004, fetch=1.9"}}
	s := Default()
	var err error
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_, hintErr := s.Hint(h, noon)
		err = cmp.Or(err, hintErr)
	}))
	assert.NoError(t, err)
}

// FuzzHint checks the bounds of accepted hints.
func FuzzHint(f *testing.F) {
	f.Add("at=1763640000.5, running=12, stalled=3, stalled_high=0, cores=16, cached=1, waited=0.004, fetch=1.9")
	f.Add("running=1,stalled=0x1p-2")
	f.Add("running=1, stalled=nan, cached=0")
	f.Add("running=1, stalled=2, at=1763639999")
	f.Add("TEXT cpu_utilization=0.75, named_metrics.running=12, named_metrics.stalled=4, named_metrics.stalled_high=1")
	f.Fuzz(func(t *testing.T, line string) {
		got, err := Default().Hint(http.Header{"X-Load": {line}}, noon)
		require.False(t, got.At.After(noon))
		if err != nil {
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
	})
}

func TestCachedShare(t *testing.T) {
	const usage = `"usage":{"prompt_tokens":200,"total_tokens":210,"completion_tokens":10,"prompt_tokens_details":%s}`
	const unknown = -1
	for text, want := range map[string]float64{
		`{"choices":[],` + fmt.Sprintf(usage, `{"cached_tokens":50}`) + `}`:                                   0.25,
		`{"choices":[],` + fmt.Sprintf(usage, `{ "audio_tokens": 0, "cached_tokens" : 200 }`) + `,"kv":null}`: 1,
		"data: {\"choices\":[]," + fmt.Sprintf(usage, `{"cached_tokens":0}`) + "}\n\ndata: [DONE]\n\n":        0,
		`{` + fmt.Sprintf(usage, `null`) + `}`:                                                                unknown,
		`{` + fmt.Sprintf(usage, `{"cached_tokens":201}`) + `}`:                                               unknown,
		`{` + fmt.Sprintf(usage, `{"cached_tokens":-1}`) + `}`:                                                unknown,
		`{"usage":{"prompt_tokens":0,"prompt_tokens_details":{"cached_tokens":0}}}`:                           unknown,
		`{"usage":{"prompt_tokens":10}}`:                                                                      unknown,
		`{"content":"say \"prompt_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":2}"}`:               unknown,
		`{"prompt_tokens_details":{"cached_tokens":1}}`:                                                       unknown,
		``: unknown,
	} {
		share, ok := CachedShare([]byte(text))
		if !ok {
			share = unknown
		}
		assert.InDelta(t, want, share, 1e-9, text)
	}
}

func FuzzCachedShare(f *testing.F) {
	f.Add([]byte(`"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":3`))
	f.Fuzz(func(t *testing.T, tail []byte) {
		if share, ok := CachedShare(tail); ok {
			assert.GreaterOrEqual(t, share, 0.0)
			assert.LessOrEqual(t, share, 1.0)
		}
	})
}
