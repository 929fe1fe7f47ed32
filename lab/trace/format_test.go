package trace

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// request is one of 40 requests that each format below contains, in the order of their ends.
type request struct {
	At, End time.Time
	MS      int
	Key, Up string
}

func requests() (all []request) {
	for i := range 40 {
		ms, at := 100+10*(i%7), time.Date(2026, 1, 5, 9, 0, 0, 125e6, time.UTC).Add(time.Duration(i)*250*time.Millisecond)
		all = append(all, request{at, at.Add(time.Duration(ms) * time.Millisecond), ms, fmt.Sprintf("k%d", i%5), fmt.Sprintf("10.0.0.%d:8080", 1+i%3)})
	}
	return all
}

// What the templates of testdata/forms.txt write.
const isoTime = "2006-01-02T15:04:05.000Z07:00"

func (r request) ISO() string         { return r.At.Format(isoTime) }
func (r request) India() string       { return r.At.In(time.FixedZone("", 19800)).Format(isoTime) }
func (r request) CLF() string         { return "02/Jan/2006:15:04:05 -0700" }
func (r request) Seconds() float64    { return float64(r.MS) / 1e3 }
func (r request) Sent() float64       { return float64(r.MS-30) / 1e3 }
func (r request) EndSeconds() float64 { return float64(r.End.UnixMilli()) / 1e3 }

// format is one of testdata/forms.txt.
type format struct {
	name, head string
	line       *template.Template
	whole      bool // its times are in whole seconds
}

func formats(t *testing.T) (all []format) {
	t.Helper()
	text, err := os.ReadFile("testdata/forms.txt")
	require.NoError(t, err)
	unquote := func(escaped string) string {
		plain, err := strconv.Unquote(`"` + escaped + `"`)
		require.NoError(t, err, escaped)
		return plain
	}
	for _, block := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n\n")[1:] {
		lines := strings.Split(block, "\n")
		name, whole := strings.CutSuffix(lines[0], " [s]")
		f := format{name: name, whole: whole}
		if head, has := strings.CutPrefix(lines[1], "head: "); has {
			f.head = unquote(head)
		}
		line := lines[len(lines)-1]
		if escaped, is := strings.CutPrefix(line, "go:"); is {
			line = unquote(escaped)
		}
		f.line, err = template.New(name).Delims("<<", ">>").Parse(line)
		require.NoError(t, err)
		all = append(all, f)
	}
	require.NotEmpty(t, all)
	return all
}

// The same requests, in the formats of proxies, collectors and exporters, give the same jobs, and every line is read.
func TestForms(t *testing.T) {
	for _, form := range formats(t) {
		var text strings.Builder
		text.WriteString(form.head)
		for _, r := range requests() {
			require.NoError(t, form.line.Execute(&text, r))
			text.WriteByte('\n')
		}
		logs, err := ReadLogs(1000, regexp.MustCompile(`project=(\w+)`), file(t, text.String()))
		if !assert.NoError(t, err, form.name) {
			continue
		}
		if logs.Seen.Upstreams != 3 || len(logs.entries) != 40 || strings.Contains(fmt.Sprint(logs.Notes), "left out") {
			t.Errorf("%s: %d jobs, %v\n%.500s", form.name, len(logs.entries), logs.Notes, text.String())
			continue
		}
		for i, r := range requests() {
			e, off := logs.entries[i], 0.002
			if form.whole {
				off = 1
			}
			require.InDelta(t, r.At.Sub(requests()[0].At).Seconds(), e.job.Offset, off, form.name)
			require.InDelta(t, r.Seconds(), e.took, 1e-6, form.name)
			require.Equal(t, []string{r.Key, r.Up}, []string{string(e.job.Project), e.upstream}, form.name)
		}
	}
}

// A line that cannot be read is reported and skipped.
func TestBadLines(t *testing.T) {
	const head, good = "time,key,duration,priority\n", "5,a,1,\n"
	long := strings.Repeat("x", 3*maxLine)
	for name, c := range map[string]struct{ text, want string }{
		"long":        {head + good + long + "\n" + good, "line 3: is longer than 1 MiB: xxx"},
		"long, last":  {head + good + good + long, "line 4: is longer than 1 MiB"},
		"stray quote": {head + good + `5,"a,1` + "\n" + good, `line 3: `},
		"control":     {head + good + "\x1b[2Jx\n" + good, "line 3: 1 values are not 4: ?[2Jx (left out; 1 such lines)"},
		"no number":   {head + good + "5,a,x,\n" + good, `line 3: field duration: "x" is not a time of at least 0`},
		"negative":    {head + good + "5,a,-1,\n" + good, `line 3: field duration: "-1" is not a time of at least 0`},
		"no instant":  {head + good + "now,a,1,\n" + good, `line 3: field time: "now" is neither like 2026-01-05T09:00:00.123Z nor seconds since 1970`},
		"priority":    {head + good + "5,a,1,middling\n" + good, `line 3: field priority: unknown priority "middling": it is high or low`},
		"no time":     {head + good + ",a,1,\n" + good, "line 3: fields time and ended: both are missing"},
		"one array":   {`[{"a":1},{"b":2}]` + "\n" + strings.Repeat(`{"time":5,"duration":1}`+"\n", 2), "line 1: is a JSON array: write one object a line, as with jq -c '.[]'"},
	} {
		logs, err := ReadLogs(1000, nil, file(t, c.text))
		require.NoError(t, err, name)
		assert.Len(t, logs.entries, 2, name)
		assert.Contains(t, fmt.Sprint(logs.Notes), c.want, name)
		assert.Contains(t, fmt.Sprint(logs.Notes), "(left out; 1 such lines)", name)
	}
}

// Null, "" and a missing key mean no affinity. Large numbers are distinct keys.
func TestKeys(t *testing.T) {
	text := ""
	for _, key := range []string{`"key":null,`, `"key":"",`, `"key":"-",`, ``, `"key":9007199254740993,`, `"key":9007199254740992,`, `"key":"9007199254740993",`} {
		text += `{"time":5,` + key + `"duration":1,"upstream":"a"}` + "\n"
	}
	logs, err := ReadLogs(1000, nil, file(t, text))
	require.NoError(t, err)
	var keys []Project
	for _, e := range logs.entries {
		keys = append(keys, e.job.Project)
	}
	assert.Equal(t, []Project{"", "", "", "", "9007199254740993", "9007199254740992", "9007199254740993"}, keys)
}

// If nginx reached no upstream, it logs the name of the upstream group.
func TestAnUpstreamGroupIsNoUpstream(t *testing.T) {
	logs, err := ReadLogs(1000, nil, file(t, "time,key,duration,upstream\n5,a,1,10.0.0.1:80\n6,a,1,unix:/a\n7,a,1,\"10.0.0.1:80, backend\"\n"))
	require.NoError(t, err)
	assert.Equal(t, 2, logs.Seen.Upstreams)
	assert.False(t, logs.entries[2].answered)
}

func TestCompressedLogs(t *testing.T) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	fmt.Fprint(zip, "time,key,duration\n"+strings.Repeat("5,a,1\n", 100))
	require.NoError(t, zip.Close())
	write := func(data []byte) string {
		path := filepath.Join(t.TempDir(), "a.gz")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		return path
	}
	logs, err := ReadLogs(1000, nil, write(append(out.Bytes(), out.Bytes()...)))
	require.NoError(t, err)
	assert.Len(t, logs.entries, 200)
	logs, err = ReadLogs(1000, nil, write(append(out.Bytes(), out.Bytes()[:len(out.Bytes())-9]...)))
	require.NoError(t, err)
	assert.Contains(t, fmt.Sprint(logs.Notes), "unexpected EOF after ")
	_, err = ReadLogs(1000, nil, write([]byte("\x28\xb5\x2f\xfd")))
	require.ErrorContains(t, err, "zstd -d")
	_, err = ReadLogs(1000, nil, write([]byte("\xff\xfet\x00")))
	require.ErrorContains(t, err, "is UTF-16")
}

// If a log has gaps of years, for example because a clock was wrong, the period with the most
// jobs is used.
func TestBusiestPeriodIsUsed(t *testing.T) {
	logs, err := ReadLogs(1000, nil, file(t, "time,key,duration\n"+strings.Repeat("5,a,1\n", 9)+strings.Repeat("1767603600.1,a,1\n", 20)+"1893834000.1,a,1\n"))
	require.NoError(t, err)
	assert.Len(t, logs.entries, 20)
	assert.Contains(t, logs.Notes[1], "20 of 30 jobs count: those that arrived from 2026-01-05T09:00:00Z")
}

func TestPausesAreShortened(t *testing.T) {
	logs, err := ReadLogs(1000, nil, file(t, "time,key,duration\n0.5,a,100\n50.5,a,1\n105.5,a,1\n1000.5,a,1\n5000.5,a,1\n"))
	require.NoError(t, err)
	assert.Equal(t, 4873.0, logs.Shorten(10))
	jobs := logs.Estimate(9, 0)
	assert.Equal(t, []float64{0, 50, 105, 116, 127}, []float64{jobs[0].Offset, jobs[1].Offset, jobs[2].Offset, jobs[3].Offset, jobs[4].Offset})
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
		logs, err := ReadLogs(1000, nil, file(t, text))
		require.NoError(t, err)
		jobs := logs.Estimate(1, 0)
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
