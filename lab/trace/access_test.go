package trace

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func open(t *testing.T, text string) (*Logs, error) {
	t.Helper()
	return ReadLogs(file(t, text))
}

// The examples of lab/README.md for HAProxy, nginx and Envoy, and a CSV file, tell the same jobs.
func TestAccessLogs(t *testing.T) {
	for name, text := range map[string]string{
		"HAProxy": `haproxy[7]: {"ended":1767603602000,"key":"a","duration_ms":2000,"upstream":"x","hit":"MISS"}
haproxy[7]: {"ended":1767603602000,"key":"a","duration_ms":500,"upstream":"y","hit":"HIT"}`,
		"nginx": `{"ended":1767603602.000,"key":"a","duration":2.000,"upstream":"x","hit":"MISS"}
{"ended":1767603602.000,"key":"a","duration":0.500,"upstream":"y","hit":"HIT"}`,
		"Envoy": `{"time":"2026-01-05T09:00:00.000Z","key":"a","duration_ms":"2000","upstream":"x","hit":"MISS"}
{"time":"2026-01-05T09:00:01.500Z","key":"a","duration_ms":"500","upstream":"y","hit":"HIT"}`,
		"CSV": "time,key,duration,upstream,hit\n1767603600,a,2,x,false\n1767603601.5,a,0.5,y,true\n",
	} {
		f, err := open(t, text)
		require.NoError(t, err, name)
		require.Len(t, f.Jobs, 2, "%s: %v", name, f.Notes)
		assert.Zero(t, f.Jobs[0].Offset)
		assert.InDelta(t, 1.5, f.Jobs[1].Offset, 1e-6, name)
		assert.Equal(t, Project("a"), f.Jobs[0].Project)
		assert.InDelta(t, 1.5, f.Jobs[0].Load, 1e-6, "by how much longer the miss took")
		assert.InDelta(t, 0.5, f.Jobs[1].Operators, 1e-6)
		assert.Equal(t, Seen{Upstreams: 2, Hits: 1, Hit: 2, Duration: 1.25, Peak: 1}, f.Seen, name)
	}
}

func TestPeak(t *testing.T) {
	f, err := open(t, "time,key,duration,upstream\n10,a,5,x\n11,a,5,x\n11,a,5,y\n15,a,1,x\n15.5,a,1,y\n")
	require.NoError(t, err)
	assert.Equal(t, 2, f.Seen.Peak, "one begins as another ends")
}

func TestAccessLogsWithLess(t *testing.T) {
	f, err := open(t, "key,ended,duration_ms,priority\n-,10,500,high\nb,11,500,\n")
	require.NoError(t, err)
	require.Len(t, f.Jobs, 2)
	assert.Empty(t, f.Jobs[0].Project)
	assert.Equal(t, "high", f.Jobs[0].Priority.String())
	assert.Equal(t, "low", f.Jobs[1].Priority.String())
	assert.Zero(t, f.Seen.Upstreams+f.Seen.Hit)
}

func TestAccessLogsSayWhatIsWrong(t *testing.T) {
	const head = "time,key,duration,priority\n5,a,1,\n"
	for line, want := range map[string]string{
		"5,a,x,\n":         `line 3: field duration: "x" is not a time of at least 0`,
		"5,a,-1,\n":        `line 3: field duration: "-1" is not a time of at least 0`,
		"now,a,1,\n":       `line 3: field time: "now" is neither like 2026-01-05T09:00:00.123Z nor seconds since 1970`,
		"5,a,1,middling\n": `line 3: field priority: unknown priority "middling": it is high or low`,
		"5,a\n":            "line 3: 2 values are not 4",
		",a,1,\n":          "line 3: fields time and ended: both are missing",
	} {
		f, err := open(t, head+line)
		require.NoError(t, err)
		assert.Len(t, f.Jobs, 1)
		assert.Contains(t, f.Notes[1], want)
	}
}
