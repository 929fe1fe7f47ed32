package report

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

func TestPageMustBePrometheusText(t *testing.T) {
	for kind, want := range map[string]string{
		"":           "",
		"text/plain": "",
		"text/plain; version=0.0.4; charset=utf-8; escaping=underscores": "",
		"text/html; charset=utf-8":                                       `content type "text/html; charset=utf-8" is not Prometheus text`,
		"text/plain; version=9":                                          `content type "text/plain; version=9" is not Prometheus text`,
		"application/openmetrics-text; version=1.0.0":                    `content type "application/openmetrics-text; version=1.0.0" is not Prometheus text`,
	} {
		h := http.Header{}
		if kind != "" {
			h.Set("Content-Type", kind)
		}
		_, err := readPage(h, strings.NewReader(goodPage), 1000)
		if want == "" {
			assert.NoError(t, err, kind)
		} else {
			assert.EqualError(t, err, want)
		}
	}
}

// FuzzMetrics checks that no bytes give a report out of bounds. Pages without
// comments and labels are compared with a naive reader.
func FuzzMetrics(f *testing.F) {
	f.Add([]byte(goodPage))
	f.Add([]byte("ruleserver_stalled_joblets 1\nruleserver_jobs_running 2\nruleserver_jobs_running 3\n"))
	f.Add([]byte("ruleserver_stalled_joblets{priority=\"high\"} NaN\n"))
	f.Add([]byte("# TYPE ruleserver_wait_seconds summary\nruleserver_wait_seconds_sum 1\nruleserver_wait_seconds_count 1\n"))
	f.Add([]byte("{\"a b\",c=\"d\"} 1e3 12\n"))
	names := Default().Names
	f.Fuzz(func(t *testing.T, data []byte) {
		page, err := readPage(http.Header{}, bytes.NewReader(data), 1000)
		if err != nil {
			return
		}
		r, totals, err := loadOf(page, read(names))
		if err != nil {
			return
		}
		for p := range selection.Priorities {
			require.True(t, r.Stalled[p] >= 0 && r.Running[p] >= 0, "%v", r)
		}
		require.True(t, r.Cores >= 0 && r.Cores <= maxCores, "%v", r.Cores)
		require.True(t, r.CoresBusy == -1 || r.CoresBusy >= 0, "%v", r.CoresBusy)
		require.True(t, r.Completed == -1 || r.Completed >= 0, "%v", r.Completed)
		for _, before := range []total{{}, unknown, totals.wait} {
			require.False(t, totals.wait.mean(before) < 0)
		}
		if !bytes.ContainsAny(data, "#{\"") {
			require.Equal(t, naiveSum(string(data), names.Stalled), r.Stalled[selection.Low])
			require.Equal(t, naiveSum(string(data), names.Running), r.Running[selection.Low])
		}
	})
}

// naiveSum adds up a metric on a page without comments and labels.
func naiveSum(page, name string) (sum float64) {
	for line := range strings.SplitSeq(page, "\n") {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			x, _ := strconv.ParseFloat(words[1], 64)
			sum += x
		}
	}
	return sum
}
