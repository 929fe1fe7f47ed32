package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/settings"
)

// A file can have a word instead of the section, or some of the section's keys.
func TestTheSectionAndItsShortForm(t *testing.T) {
	for text, want := range map[string]func(*Settings){
		"{}":                      func(*Settings) {},
		"reports: {}":             func(*Settings) {},
		"reports: none":           func(s *Settings) { s.Instead = "none" },
		"reports: {orca: true}":   func(s *Settings) { s.AskORCA = true },
		"reports: {interval: 1m}": func(s *Settings) { s.Interval = time.Minute },
	} {
		file := struct {
			Reports Settings `yaml:"reports"`
		}{Default()}
		_, err := cli.NewDocument("x", []byte(text)).Decode(&file, func(f *settings.Faults) { file.Reports.Check(f.In("reports")) })
		require.NoError(t, err, text)
		expected := Default()
		want(&expected)
		assert.Equal(t, expected, file.Reports, text)
	}
	assert.Equal(t, 30*time.Second, Default().cacheInterval())
	assert.Equal(t, time.Hour, Settings{Interval: 20 * time.Minute}.cacheInterval(), "six intervals, but at most one hour")
}

func TestMetricsRefused(t *testing.T) {
	for _, text := range []string{
		"", "a\xffb", "a{b}", "a{b=1}", `a{b="1"`, `a{b="1"}c`, `{b="1"}`, `x{a="b"}*2`, "a 5", "a 1 7", "# a", "a\nb", `a{"b.c"="d"}`,
		"a{x=\"" + strings.Repeat("y", maxMetricBytes) + "\"}",
	} {
		_, err := parseMetric(text)
		assert.ErrorIs(t, err, errNoMetric, "%q", text)
	}
	for _, text := range []string{"a * -1", "a * b", "a * Inf", "a * 0", "a * NaN"} {
		_, err := parseMetric(text)
		assert.ErrorIs(t, err, errScale, text)
	}
}
