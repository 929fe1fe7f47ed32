package report

import (
	"fmt"
	"runtime"
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
		{"pilotfish=stalled,priority=high", "2"},
		{"pilotfish=stalled,priority=low", "7"},
		{"pilotfish=running,priority=high", "3"},
		{"pilotfish=running,priority=low", "12"},
		{"pilotfish=cores", "16"},
		{"pilotfish=cores_busy", "15"},
		{"pilotfish=completed,priority=high", "100"},
		{"pilotfish=completed,priority=low", "1010"},
		{"pilotfish=wait_sum,priority=high", "40"},
		{"pilotfish=wait_sum,priority=low", "2000"},
		{"pilotfish=wait_count,priority=high", "100"},
		{"pilotfish=wait_count,priority=low", "1000"},
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
	var got []string
	require.NoError(t, readVector(strings.NewReader(
		`{"warnings":["some"],"data":{"result":[`+element("instance=b,c=d", "-Inf")+`,`+element("job=f", "0.25")+`],"resultType":"vector"},"status":"success"}`),
		func(l labels, at, value float64) {
			assert.InDelta(t, looked, at, 0)
			got = append(got, fmt.Sprint(l, value))
		}))
	assert.Equal(t, []string{"{b   } -Inf", "{ f  } 0.25"}, got)
}

// However many labels a sample has, those that nobody reads take no memory.
func TestAHostileVectorIsSmall(t *testing.T) {
	var many strings.Builder
	for i := range 1 << 19 {
		fmt.Fprintf(&many, `"l%d":"",`, i)
	}
	text := strings.ReplaceAll(vectorOf(element("instance=b", "1")), `{"instance"`, `{`+many.String()+`"instance"`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, readVector(strings.NewReader(text), func(l labels, _, _ float64) { assert.Equal(t, "b", l.Instance) }))
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(len(text)))
}

// FuzzVector checks that no bytes give a report out of bounds.
func FuzzVector(f *testing.F) {
	f.Add([]byte(vectorOf()))
	f.Add([]byte(vectorOf(scraped("", 1, nil))))
	f.Add([]byte(vectorOf(scraped("", 1, map[string]string{"pilotfish=cores": "NaN"}))))
	f.Add([]byte(`{"status":"error","errorType":"timeout","error":"query timed out"}`))
	names := Default().Names
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newScrape()
		if err := readVector(strings.NewReader(string(data)), s.add); err != nil {
			return
		}
		r, _, err := s.load(noon, read(names))
		if err != nil {
			return
		}
		for p := range selection.Priorities {
			require.True(t, r.Stalled[p] >= 0 && r.Running[p] >= 0, "%v", r)
		}
		require.True(t, r.Cores >= 0 && r.Cores <= maxCores, "%v", r.Cores)
		require.True(t, r.CoresBusy == -1 || r.CoresBusy >= 0, "%v", r.CoresBusy)
		require.True(t, r.Completed == -1 || r.Completed >= 0, "%v", r.Completed)
		require.False(t, r.At.After(noon) || r.At.Before(noon.Add(-longest)), "%v", r.At)
	})
}
