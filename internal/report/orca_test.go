package report

import (
	"encoding/base64"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	orcav3 "github.com/cncf/xds/go/xds/data/orca/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/settings"
)

// inText is a load report in the text form.
func inText(text string) http.Header { return http.Header{orcaHeader: {text}} }

// inBinary is a load report in the binary form.
func inBinary(t testing.TB, r *orcav3.OrcaLoadReport) http.Header {
	message, err := proto.Marshal(r)
	require.NoError(t, err)
	return http.Header{orcaBinaryHeader: {base64.StdEncoding.EncodeToString(message)}}
}

func TestORCAForms(t *testing.T) {
	full := &orcav3.OrcaLoadReport{
		CpuUtilization: 0.75, ApplicationUtilization: 1.5, MemUtilization: 0.1, RpsFractional: 20,
		RequestCost: map[string]float64{"running": 99},
		Utilization: map[string]float64{"disk": 0.5},
		NamedMetrics: map[string]float64{
			"running": 12, "stalled": 4, "stalled_high": 1, "cores": 16, "cached": 1, "waited": 0.004, "fetch": 1.9, "other": -7,
		},
	}
	inJSON, err := protojson.Marshal(full)
	require.NoError(t, err)
	inSnakeJSON, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(full)
	require.NoError(t, err)
	message, err := proto.Marshal(full)
	require.NoError(t, err)
	const text = "cpu_utilization=0.75, application_utilization=1.5,mem_utilization=0.1 , named_metrics.running=12, named_metrics.stalled=4, " +
		"named_metrics.stalled_high=1, named_metrics.cached=1, named_metrics.waited=0.004, named_metrics.fetch=1.9, named_metrics.other=-7"
	want := pool.Hint{
		At: noon, Running: byPriority(12, 0), Stalled: byPriority(3, 1), Utilization: 1.5,
		Cached: true, Known: true, Waited: 4 * time.Millisecond, Fetched: 1900 * time.Millisecond,
	}
	for name, h := range map[string]http.Header{
		"text":                 inText("TEXT " + text),
		"text, no prefix":      inText(text),
		"text, colons":         inText("TEXT " + strings.ReplaceAll(text, "=", ":")),
		"JSON":                 inText("JSON " + string(inJSON)),
		"JSON, names of proto": inText("json " + string(inSnakeJSON)),
		"JSON, no prefix":      inText(string(inJSON)),
		"binary":               inBinary(t, full),
		"binary, no padding":   {orcaBinaryHeader: {base64.RawStdEncoding.EncodeToString(message)}},
		"binary, BIN":          inText("BIN " + base64.StdEncoding.EncodeToString(message)),
	} {
		got, ok := Default().Hint(h, noon)
		assert.True(t, ok, name)
		assert.Equal(t, want, got, name)
	}
}

func TestWhatAnORCAReportTells(t *testing.T) {
	bare := pool.Hint{
		At: noon, Running: byPriority(-1, 0), Stalled: byPriority(-1, 0), Utilization: -1, Waited: -time.Second, Fetched: -time.Second,
	}
	with := func(change func(*pool.Hint)) *pool.Hint {
		h := bare
		change(&h)
		return &h
	}
	for text, want := range map[string]*pool.Hint{
		"TEXT cpu_utilization=0.5":                               with(func(h *pool.Hint) { h.Utilization = 0.5 }),
		"TEXT cpu_utilization=0.5, application_utilization=0.25": with(func(h *pool.Hint) { h.Utilization = 0.25 }),
		"TEXT named_metrics.running=3":                           with(func(h *pool.Hint) { h.Running = byPriority(3, 0) }),
		"TEXT named_metrics.stalled=3":                           with(func(h *pool.Hint) { h.Stalled = byPriority(3, 0) }),
		"TEXT named_metrics.stalled=3, named_metrics.stalled_high=3": with(func(h *pool.Hint) {
			h.Stalled = byPriority(0, 3)
		}),
		`JSON {"cpu_utilization":"0.5","eps":"NaN"}`: with(func(h *pool.Hint) { h.Utilization = 0.5 }),

		"":                              nil, // all that follows tells no load, or makes no sense
		"TEXT":                          nil,
		"TEXT mem_utilization=0.5":      nil,
		"TEXT named_metrics.cached=1":   nil,
		"TEXT running=3":                nil,
		"TEXT cpu_utilization":          nil,
		"TEXT cpu_utilization=":         nil,
		"TEXT =1":                       nil,
		"TEXT cpu_utilization=NaN":      nil,
		"TEXT cpu_utilization=-0.1":     nil,
		"TEXT cpu_utilization=+Inf":     nil,
		"TEXT cpu_utilization=1e7":      nil,
		"TEXT named_metrics.running=-1": nil,
		"TEXT named_metrics.running=1e13, cpu_utilization=0.5":        nil, // one absurd figure discredits the others
		"TEXT named_metrics.stalled=1, named_metrics.stalled_high=2":  nil,
		"TEXT named_metrics.running=1, named_metrics.cached=0.5":      nil,
		"TEXT named_metrics.running=1, named_metrics.waited=1e300":    nil,
		`JSON {"cpu_utilization":"a lot"}`:                            nil,
		`JSON {"cpu_utilization":[1]}`:                                nil,
		`JSON {"cpu_utilization":0.5`:                                 nil,
		`JSON {"cpu_utilization":0.5,"named_metrics":{"running":[]}}`: nil,
		`JSON {"cpu_utilization":0.5,"named_metrics":7}`:              nil,
		"BIN !":    nil,
		"BIN CQAA": nil, // cut short
		"TEXT " + strings.Repeat("x=1,", 3000) + "cpu_utilization=1": nil,
	} {
		got, ok := Default().Hint(inText(text), noon)
		require.Equal(t, want != nil, ok, "%.80s", text)
		if want != nil {
			assert.Equal(t, *want, got, text)
		}
	}
	for _, figure := range []float64{math.NaN(), math.Inf(1), -1, 1e13} {
		_, ok := Default().Hint(inBinary(t, &orcav3.OrcaLoadReport{NamedMetrics: map[string]float64{"running": figure}}), noon)
		assert.False(t, ok, "%v", figure)
	}
}

// The named metrics have the names that the settings give, and only these.
func TestNamesOfORCAMetrics(t *testing.T) {
	s := Default()
	s.ORCA.Running, s.ORCA.Stalled = "num_requests_running", ""
	hint, ok := s.Hint(inText("TEXT named_metrics.num_requests_running=7, named_metrics.running=1, named_metrics.=9, named_metrics.stalled=9"), noon)
	require.True(t, ok)
	assert.Equal(t, byPriority(7, 0), hint.Running)
	assert.Equal(t, byPriority(-1, 0), hint.Stalled)
	_, ok = s.Hint(inText("TEXT named_metrics.running=1"), noon)
	assert.False(t, ok)
}

func TestOneLoadReportCounts(t *testing.T) {
	h := inText("TEXT named_metrics.running=1")
	h["X-Load"] = []string{"running=5, stalled=0"}
	hint, ok := Default().Hint(h, noon)
	require.True(t, ok)
	assert.Equal(t, byPriority(5, 0), hint.Running, "X-Load says more")
	h["X-Load"] = []string{"running=a lot, stalled=0"}
	_, ok = Default().Hint(h, noon)
	assert.False(t, ok, "an upstream that talks nonsense is not believed elsewhere")
	_, ok = Default().Hint(http.Header{orcaHeader: {"TEXT cpu_utilization=1", "TEXT cpu_utilization=1"}}, noon)
	assert.False(t, ok)
	_, ok = Default().Hint(http.Header{}, noon)
	assert.False(t, ok)
}

func TestORCASettings(t *testing.T) {
	for want, change := range map[string]func(*ORCA){
		`orca.ask: "xml" is not one of text, json, bin`:           func(o *ORCA) { o.Ask = "xml" },
		`orca.stalled: "running" is reports.orca.running already`: func(o *ORCA) { o.Stalled = "running" },
	} {
		s := Default()
		change(&s.ORCA)
		var f settings.Faults
		s.Check(&f)
		require.ErrorContains(t, f.Err(), want)
	}
	s := Default()
	s.ORCA = ORCA{Ask: "bin"}
	var f settings.Faults
	s.Check(&f)
	require.Empty(t, f.All())
}

// FuzzORCA compares with protobuf's own readers, and looks at what is let through.
func FuzzORCA(f *testing.F) {
	f.Add("TEXT cpu_utilization=0.75, named_metrics.running=12, named_metrics.stalled=4, named_metrics.stalled_high=1")
	f.Add(`JSON {"cpuUtilization":0.75,"namedMetrics":{"running":12,"waited":"1"}}`)
	f.Add("BIN CQAAAAAAAOg/QhEKB3J1bm5pbmcRAAAAAAAA8D8=")
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := Default().Hint(inText(text), noon)
		if !ok {
			require.Zero(t, got)
			return
		}
		require.LessOrEqual(t, len(text), maxORCABytes)
		told := false
		for _, figure := range []float64{got.Running[0], got.Stalled[0], got.Stalled[1], got.Utilization} {
			require.True(t, figure >= -1 && figure <= maxCount, "%v", figure)
			told = told || figure >= 0
		}
		require.True(t, told)
		encoded, isBinary := strings.CutPrefix(text, "BIN ")
		message, err := base64.StdEncoding.DecodeString(encoded)
		var r orcav3.OrcaLoadReport
		if !isBinary || err != nil || proto.Unmarshal(message, &r) != nil {
			return // also a message whose texts are not UTF-8, which is stricter than need be
		}
		if running, told := r.GetNamedMetrics()["running"]; told {
			require.Equal(t, byPriority(running, 0), got.Running)
		}
		if r.GetApplicationUtilization() > 0 {
			require.Equal(t, r.GetApplicationUtilization(), got.Utilization)
		}
	})
}
