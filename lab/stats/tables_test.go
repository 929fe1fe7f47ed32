package stats

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reference reads the thesis's tables.
func reference(t *testing.T) Tables {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "reference", "thesis.json"))
	require.NoError(t, err)
	var tables Tables
	require.NoError(t, json.Unmarshal(text, &tables))
	return tables
}

func TestTablesInTheThesissLayout(t *testing.T) {
	tables := reference(t)
	tables.Rows = tables.Rows[14:18]
	tables.Variances = tables.Variances[:1]
	tables.Variances[0].Upstreams = tables.Variances[0].Upstreams[:3]
	var out strings.Builder
	require.NoError(t, tables.WriteText(&out))
	assert.Equal(t, `
wait_s              high                                        low
run                 mean   median      p90   p95   p99    max  mean   median    p90    p95     p99     max
Production          0.08  5.0e-05  1.2e-04  0.24  1.87  38.22  2.88  4.0e-05   1.93   9.76   80.99  273.30
Baseline, baseline  0.08  6.0e-05  1.9e-04  0.20  1.94  36.06  7.13  6.0e-05  14.84  50.12  138.50  242.19

wait variance     all       0       1       2
Production     248.13  181.27  212.45  349.68

`, "\n"+out.String())
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1_234_567: "1,234,567"} {
		assert.Equal(t, want, Thousands(n))
	}
	for seconds, want := range map[float64]string{0: "0s", 59.6: "1m", 61: "1m1s", 3600: "1h", 3660: "1h1m", 86_401: "24h0m1s"} {
		assert.Equal(t, want, Span(seconds))
	}
	for v, want := range map[float64]string{0: "0.00", 0.004: "4.0e-03", 0.006: "0.01", 12.345: "12.35"} {
		assert.Equal(t, want, number(v))
	}
	assert.Equal(t, "-", number(math.NaN()))
}
