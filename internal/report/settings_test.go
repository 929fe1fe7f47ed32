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

func TestSettingsRefuseInvalidValues(t *testing.T) {
	for _, c := range []struct {
		key, want string
		change    func(*Settings)
	}{
		{"interval", "0s is not between 1ms and 1h0m0s", func(s *Settings) { s.Interval = 0 }},
		{"interval", "2h0m0s is not between 1ms and 1h0m0s", func(s *Settings) { s.Interval = 2 * time.Hour }},
		{"metrics_path", `"metrics" must begin with /`, func(s *Settings) { s.MetricsPath = "metrics" }},
		{"metrics_path", `"//elsewhere/metrics" is not a path such as /metrics`, func(s *Settings) { s.MetricsPath = "//elsewhere/metrics" }},
		{"cache_path", `"" must begin with /`, func(s *Settings) { s.CachePath = "" }},
		{"cache_path", `"http://elsewhere/" must begin with /`, func(s *Settings) { s.CachePath = "http://elsewhere/" }},
		{"cache_path", `"/a#b" is not a path such as /metrics`, func(s *Settings) { s.CachePath = "/a#b" }},
		{"cache_path", `"/%zz" is not a path such as /metrics`, func(s *Settings) { s.CachePath = "/%zz" }},
		{"names.running", "one of running and stalled must be a metric: without them the load is unknown", func(s *Settings) { s.Names.Stalled, s.Names.Running = "none", "none" }},
		{"prometheus", `"ftp://a" is not a URL such as http://127.0.0.1:9090`, func(s *Settings) { s.Prometheus = "ftp://a" }},
		{"prometheus", `"http://" is not a URL such as http://127.0.0.1:9090`, func(s *Settings) { s.Prometheus = "http://" }},
		{"prometheus", "it holds credentials, which do not belong in a configuration file", func(s *Settings) { s.Prometheus = "http://user:secret@a" }},
		{"prometheus", "it has a query or a fragment, and pilotfish adds its own query", func(s *Settings) { s.Prometheus = "http://a/?b=c" }},
	} {
		s := Default()
		c.change(&s)
		var f settings.Faults
		s.Check(f.In("reports"))
		assert.Equal(t, []settings.Fault{{Key: strings.TrimSuffix("reports."+c.key, "."), Text: c.want}}, f.All())
	}
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
