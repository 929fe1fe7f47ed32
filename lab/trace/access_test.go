package trace

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func open(t *testing.T, text string) (*Logs, []Job) {
	t.Helper()
	logs, err := ReadLogs(1000, nil, file(t, text))
	require.NoError(t, err)
	return logs, logs.Estimate(1, 0)
}

// written returns the lines that a proxy would write with its settings in lab/README.md and these values of its fields.
func written(t *testing.T, proxy, format string, fields map[string][]string) (text string) {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, block, _ := strings.Cut(string(readme), "# "+proxy+"\n")
	found := regexp.MustCompile(format).FindStringSubmatch(block)
	require.NotNil(t, found, proxy)
	for i := range 3 {
		line := regexp.MustCompile(`(\w+): "`).ReplaceAllString(found[1], `"$1":"`) // Envoy converts YAML to JSON
		for field, values := range fields {
			require.Contains(t, line, field, proxy)
			line = strings.ReplaceAll(line, field, values[i])
		}
		require.NotRegexp(t, `[%$]`, line, "%s: a field has no value", proxy)
		text += "proxy[7]: " + line + "\n"
	}
	return text
}

// With the settings of lab/README.md, HAProxy, nginx and Envoy log the same jobs as a CSV file. For a retried
// job they log the last attempt, and for one whose submitter disconnected, that it reached no upstream.
func TestAccessLogs(t *testing.T) {
	for name, text := range map[string]string{
		"HAProxy": written(t, "HAProxy", `log-format '(.*)'`, map[string][]string{
			"%[date(0,ms)]": {"1767603602000", "1767603602000", "1767603602000"}, "%[var(txn.key),json(utf8s)]": {"a", "a", "a"},
			"%Ta": {"2000", "500", "100"}, "%s": {"x", "y", "<NOSRV>"},
		}),
		"nginx": written(t, "nginx", `escape=json '(.*)'`, map[string][]string{
			"$msec": {"1767603602.000", "1767603602.000", "1767603602.000"}, "$http_x_project": {"a", "a", "a"},
			"$request_time": {"2.000", "0.500", "0.100"}, "$upstream_addr": {"x", "x, z : y", ""}, "$upstream_http_x_cache": {", MISS", "HIT", "-"},
		}),
		"Envoy": strings.ReplaceAll(written(t, "Envoy", `json_format: ({.*})`, map[string][]string{
			"%START_TIME%":     {"2026-01-05T09:00:00.000Z", "2026-01-05T09:00:01.500Z", "2026-01-05T09:00:01.900Z"},
			"%REQ(X-PROJECT)%": {"a", "a", "a"}, "%DURATION%": {"2000", "500", "100"}, "%UPSTREAM_HOST%": {"x", "y", "null"}, "%RESP(X-CACHE)%": {"MISS", "HIT", "null"},
		}), `"null"`, "null"),
		"CSV": "time,key,duration,upstream,hit\n1767603600,a,2,x,false\n1767603601.5,a,0.5,\"z, y\",true\n1767603601.9,a,0.1,-,\n",
	} {
		logs, jobs := open(t, text)
		require.Len(t, jobs, 3, "%s: %v", name, logs.Notes)
		assert.InDeltaSlice(t, []float64{0, 1.5, 1.9}, []float64{jobs[0].Offset, jobs[1].Offset, jobs[2].Offset}, 1e-6, name)
		assert.Equal(t, Project("a"), jobs[0].Project)
		want, fetch := Seen{Upstreams: 2, Hits: 1, Hit: 2, Keys: 1, Duration: 1.25, Cores: 1, Unlike: 1}, 1.5
		if name == "HAProxy" { // it does not log cache hits
			want.Hits, want.Hit, want.Fetch, fetch = 0, 0, 0.5, 0.5
		}
		logs.Seen.Duration, logs.Seen.Fetch, logs.Seen.Wait = ms(logs.Seen.Duration), ms(logs.Seen.Fetch), ms(logs.Seen.Wait)
		assert.Equal(t, want, logs.Seen, name)
		assert.InDeltaSlice(t, []float64{fetch, 0.5, 0.5}, []float64{jobs[0].Load, jobs[1].Operators, jobs[2].Operators}, 1e-6,
			"%s: the last one costs what the key's others do", name)
	}
}

func TestAccessLogsWithLess(t *testing.T) {
	logs, jobs := open(t, "key,ended,duration_ms,priority\n-,10,500,high\nb,11,500,\n")
	require.Len(t, jobs, 2)
	assert.Empty(t, jobs[0].Project)
	assert.Equal(t, "high", jobs[0].Priority.String())
	assert.Equal(t, "low", jobs[1].Priority.String())
	assert.Zero(t, logs.Seen.Upstreams+logs.Seen.Hit)
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
		logs, jobs := open(t, head+line)
		assert.Len(t, jobs, 1)
		assert.Contains(t, logs.Notes[1], want)
	}
}
