package report

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// looked is the time of the queries in these tests, on Prometheus's clock.
const looked = 1763677245.5

// element is a sample of a vector as JSON; labels is a list of "name=value".
func element(labels, value string) string {
	var pairs []string
	for label := range strings.SplitSeq(labels, ",") {
		name, text, _ := strings.Cut(label, "=")
		pairs = append(pairs, fmt.Sprintf("%q:%q", name, text))
	}
	return fmt.Sprintf(`{"metric":{%s},"value":[%f,%q]}`, strings.Join(pairs, ","), looked, value)
}

// scraped is all that Prometheus has of the upstream of goodPage, scraped age
// seconds before looked. change replaces values by their labels; "" removes one.
func scraped(instance string, age float64, change map[string]string) string {
	var all []string
	for _, s := range []struct{ labels, value string }{
		{"__name__=ruleserver_stalled_joblets,priority=high", "2"},
		{"__name__=ruleserver_stalled_joblets,priority=low", "7"},
		{"__name__=ruleserver_jobs_running,priority=high", "3"},
		{"__name__=ruleserver_jobs_running,priority=low", "12"},
		{"__name__=ruleserver_cores", "16"},
		{"__name__=ruleserver_cores_busy", "15"},
		{"__name__=ruleserver_jobs_completed_total,priority=high", "100"},
		{"__name__=ruleserver_jobs_completed_total,priority=low", "1010"},
		{"__name__=ruleserver_wait_seconds_sum,priority=high", "40"},
		{"__name__=ruleserver_wait_seconds_sum,priority=low", "2000"},
		{"__name__=ruleserver_wait_seconds_count,priority=high", "100"},
		{"__name__=ruleserver_wait_seconds_count,priority=low", "1000"},
		{"__name__=ruleserver_execution_seconds_sum,priority=low", "9000"},
		{"__name__=ruleserver_execution_seconds_count,priority=low", "1000"},
		{"pilotfish=scraped", fmt.Sprintf("%.3f", looked-age)},
	} {
		value, changed := change[s.labels]
		if !changed {
			value = s.value
		}
		if value != "" {
			all = append(all, element(s.labels+",job=rules,instance="+instance, value))
		}
	}
	return strings.Join(all, ",")
}

// vectorOf is a complete response.
func vectorOf(elements ...string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(elements, ",") + "]}}\n"
}

func TestReadVectorReadsEachSample(t *testing.T) {
	var got []sample
	require.NoError(t, readVector(strings.NewReader(
		`{"warnings":["some"],"data":{"result":[`+element("a=b,c=d", "-Inf")+`,`+element("e=f", "0.25")+`],"resultType":"vector"},"status":"success"}`),
		func(s sample) { got = append(got, s) }))
	require.Len(t, got, 2)
	assert.Equal(t, map[string]string{"a": "b", "c": "d"}, got[0].Labels)
	assert.Equal(t, point{at: looked, value: math.Inf(-1)}, *got[0].Point)
	assert.Equal(t, point{at: looked, value: 0.25}, *got[1].Point)
}

// FuzzVector checks that no bytes give a report out of bounds.
func FuzzVector(f *testing.F) {
	f.Add([]byte(vectorOf()))
	f.Add([]byte(vectorOf(scraped("", 1, nil))))
	f.Add([]byte(vectorOf(scraped("", 1, map[string]string{"__name__=ruleserver_cores": "NaN"}))))
	f.Add([]byte(`{"status":"error","errorType":"timeout","error":"query timed out"}`))
	names := Default().Names
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newScrape()
		if err := readVector(strings.NewReader(string(data)), s.add); err != nil {
			return
		}
		r, last, err := lastScrape{totals: unknownTotals()}.next(s, noon, read(names))
		if err != nil {
			return
		}
		require.Equal(t, last.at, r.At)
		for p := range selection.Priorities {
			require.True(t, r.Stalled[p] >= 0 && r.Running[p] >= 0, "%v", r)
		}
		require.True(t, r.Cores >= 0 && r.Cores <= maxCores, "%v", r.Cores)
		require.True(t, r.CoresBusy == -1 || r.CoresBusy >= 0, "%v", r.CoresBusy)
		require.True(t, r.Completed == -1 || r.Completed >= 0, "%v", r.Completed)
		require.False(t, r.At.After(noon) || r.At.Before(noon.Add(-longest)), "%v", r.At)
	})
}
