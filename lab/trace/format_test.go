package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// request is one of 40 requests that each format below contains, in the order of their ends.
type request struct {
	at, end      time.Time
	ms           int
	key, up, hit string
}

func requests() (all []request) {
	for i := range 40 {
		ms, at := 100+10*(i%7), time.Date(2026, 1, 5, 9, 0, 0, 125e6, time.UTC).Add(time.Duration(i)*250*time.Millisecond)
		all = append(all, request{at, at.Add(time.Duration(ms) * time.Millisecond), ms, fmt.Sprintf("k%d", i%5), fmt.Sprintf("10.0.0.%d:8080", 1+i%3), []string{"MISS", "HIT"}[min(1, i/5)]})
	}
	return all
}

// The same requests, in the formats of proxies, collectors and exporters, give the same jobs, and every line is read.
func TestForms(t *testing.T) {
	const clf = "02/Jan/2006:15:04:05 -0700"
	iso := func(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z07:00") }
	docker := func(stream, line string) string {
		inner, _ := json.Marshal(line + "\n")
		return fmt.Sprintf(`{"log":%s,"stream":%q,"time":"2030-01-05T09:00:00.1Z"}`, inner, stream)
	}
	js := func(r request) string {
		return fmt.Sprintf(`{"time":%q,"key":%q,"duration_ms":%d,"upstream":%q}`, iso(r.at), r.key, r.ms, r.up)
	}
	combined := func(r request, more string, args ...any) string {
		return fmt.Sprintf(`192.0.2.7 - - [%s] "POST /v1/jobs?x={%s} HTTP/1.1" 200 12 "-" "a \"b\" {c}/1.0" `, r.end.Format(clf), r.key) + fmt.Sprintf(more, args...)
	}
	for name, form := range map[string]struct {
		head  string
		line  func(r request) string
		whole bool // its times are in whole seconds
	}{
		"HAProxy, logasap": {line: func(r request) string {
			return fmt.Sprintf(`haproxy[1]: {"ended":%d,"key":%q,"duration_ms":+%d,"upstream":%q}`, r.end.UnixMilli(), r.key, r.ms, r.up)
		}},
		"HAProxy's httplog": {line: func(r request) string {
			return fmt.Sprintf(`Jan  5 09:00:00 lb haproxy[71]: 192.0.2.7:33 [%s] in~ app/%s 10/0/30/69/+%d 200 2750 - - ---- 1/1/1/1/0 0/0 {%s|x} {y} "POST /v1/jobs HTTP/1.1"`,
				r.at.Format("02/Jan/2006:15:04:05.000"), r.up, r.ms, r.key)
		}},
		"nginx, \\x and no value": {line: func(r request) string {
			return fmt.Sprintf(`{"ended":%.3f,"key":%q,"request_time":%.3f,"upstream_addr":"10.0.0.9:1, %s","agent":"\x22a\x22","x":,"y":-}`, float64(r.end.UnixMilli())/1e3, r.key, float64(r.ms)/1e3, r.up)
		}},
		"nginx, time of the end": {whole: true, line: func(r request) string {
			return fmt.Sprintf(`{"time":%q,"key":%q,"request_time":"%.3f","upstream_addr":%q}`, r.end.Format(time.RFC3339), r.key, float64(r.ms)/1e3, r.up)
		}},
		"combined, values added": {whole: true, line: func(r request) string {
			return combined(r, `"192.0.2.8" "%s" %.3f 10.0.0.9:1, %s %.3f HIT`, r.key, float64(r.ms)/1e3, r.up, 0.001)
		}},
		"combined, names added": {whole: true, line: func(r request) string {
			return combined(r, `rt=%.3f uct="0.001" key=%s upstream="%s"`, float64(r.ms)/1e3, r.key, r.up)
		}},
		"Traefik": {whole: true, line: func(r request) string {
			return fmt.Sprintf(`192.0.2.7 - - [%s] "GET /%s HTTP/1.1" 200 5 "-" "-" 7 "r@docker" "http://%s" %dms`, r.at.Format(clf), "?project="+r.key, r.up, r.ms)
		}},
		"Traefik's JSON": {line: func(r request) string {
			return fmt.Sprintf(`{"Duration":%d,"StartUTC":%q,"ServiceAddr":%q,"key":%q,"level":"info","msg":"","time":%q}`, r.ms*1e6, iso(r.at), r.up, r.key, r.end.Format(time.RFC3339))
		}},
		"Caddy": {line: func(r request) string {
			return fmt.Sprintf(`{"level":"info","ts":%.3f,"logger":"http.log.access.log0","msg":"handled request","request":{"uri":"/?project=%s","headers":{"A":["b"]}},"duration":%.3f,"upstream":%q}`,
				float64(r.end.UnixMilli())/1e3, r.key, float64(r.ms)/1e3, r.up)
		}},
		"Amazon's balancer": {line: func(r request) string {
			return fmt.Sprintf(`h2 %s app/lb/50 192.0.2.7:2817 %s 0.010 %.3f 0.020 200 200 0 57 "GET https://a:443/?project=%s& HTTP/2" "curl" - - arn "Root=1" "a" "-" 0 %s "forward"`,
				r.end.Format("2006-01-02T15:04:05.000000Z"), r.up, float64(r.ms-30)/1e3, r.key, iso(r.at))
		}},
		"Envoy": {line: func(r request) string {
			return fmt.Sprintf(`[%s] "POST /?project=%s& HTTP/2" 200 - 154 0 %d 100 "10.0.35.28" "agent" "id" "host" "tcp://%s"`, iso(r.at), r.key, r.ms, r.up)
		}},
		"Istio": {line: func(r request) string {
			return fmt.Sprintf(`[%s] "GET /?project=%s& HTTP/1.1" 200 - via_upstream - "-" 0 5 %d 9 "-" "curl" "id" "host" "%s" outbound|80||a`, iso(r.at), r.key, r.ms, r.up)
		}},
		"Istio's JSON": {line: func(r request) string {
			return fmt.Sprintf(`{"start_time":%q,"duration":%d,"upstream_host":%q,"key":%q,"path":null}`, iso(r.at), r.ms, r.up, r.key)
		}},
		"syslog with braces": {line: func(r request) string { return `<134>1 2026-01-05T09:00:00Z lb haproxy 71 - [x@1 a="{b}"] ` + js(r) }},
		"combined, other names": {whole: true, line: func(r request) string {
			return combined(r, `project=%s rt=%.3f addr="%s"`, r.key, float64(r.ms)/1e3, r.up)
		}},
		"Docker":   {line: func(r request) string { return docker("stdout", js(r)) }},
		"journald": {line: func(r request) string { return fmt.Sprintf(`{"MESSAGE":%q,"PRIORITY":"6"}`, js(r)) }},
		"collector's envelope": {line: func(r request) string {
			return `{"insertId":"x","timestamp":"2030-01-05T09:00:00Z","jsonPayload":` + js(r) + "}"
		}},
		"JSON array": {head: "[\n", line: func(r request) string { return "  " + js(r) + "," }},
		"pairs": {line: func(r request) string {
			return fmt.Sprintf(`time=%s key=%s duration=%dms upstream="%s"`, iso(r.at), r.key, r.ms, r.up)
		}},
		"offset": {line: func(r request) string {
			return strings.Replace(js(r), iso(r.at), iso(r.at.In(time.FixedZone("", 19800))), 1)
		}},
		"offset without colon": {line: func(r request) string { return strings.Replace(js(r), "Z", "+0000", 1) }},
		"seconds": {whole: true, line: func(r request) string {
			return fmt.Sprintf(`{"ended":%d,"key":%q,"duration_ms":%d,"upstream":%q}`, r.end.Unix(), r.key, r.ms, r.up)
		}},
		"microseconds": {line: func(r request) string {
			return fmt.Sprintf(`{"time":%d,"key":%q,"duration_us":%d000,"upstream":%q}`, r.at.UnixMicro(), r.key, r.ms, r.up)
		}},
		"nanoseconds": {line: func(r request) string {
			return fmt.Sprintf(`{"time":%d,"key":%q,"duration_ns":%d000000,"upstream":%q}`, r.at.UnixNano(), r.key, r.ms, r.up)
		}},
		"CSV, quoted names": {head: `"Time","Key","Duration_ms","Upstream"` + "\n", line: func(r request) string { return fmt.Sprintf("%q,%q,\"%d\",%q", iso(r.at), r.key, r.ms, r.up) }},
		"CSV, byte order mark, semicolons and commas": {head: "\ufefftime;key;duration;upstream\r\n", line: func(r request) string {
			return fmt.Sprintf("%s;%s;0,%d;%s\r", r.at.Format("2006-01-02 15:04:05.000"), r.key, r.ms, r.up)
		}},
		"CSV, spaces": {head: "time, \"key\", duration, upstream\n", line: func(r request) string {
			return fmt.Sprintf(`%s UTC, "%s", %g, %s`, r.at.Format("2006-01-02 15:04:05.000"), r.key, float64(r.ms)/1e3, r.up)
		}},
		"CSV, breaks in values, heads again": {head: "time,key,duration_ms,upstream,agent\n", line: func(r request) string {
			return fmt.Sprintf("%s,%s,%d,%s,\"a\n\"\"b\"\"\"\ntime,key,duration_ms,upstream,agent", r.at.Format("2006-01-02 15:04:05.000 +0000 UTC"), r.key, r.ms, r.up)
		}},
		"tabs": {head: "time\tkey\tduration_ms\tupstream\n", line: func(r request) string { return fmt.Sprintf("%s\t%s\t%d\t%s", iso(r.at), r.key, r.ms, r.up) }},
	} {
		text := form.head
		for _, r := range requests() {
			text += form.line(r) + "\n"
		}
		logs, err := ReadLogs(1000, regexp.MustCompile(`project=(\w+)`), file(t, text))
		if !assert.NoError(t, err, name) {
			continue
		}
		if logs.Seen.Upstreams != 3 || len(logs.entries) != 40 || strings.Contains(fmt.Sprint(logs.Notes), "left out") {
			t.Errorf("%s: %d jobs, %v\n%s", name, len(logs.entries), logs.Notes, form.line(requests()[0]))
			continue
		}
		for i, r := range requests() {
			e, off := logs.entries[i], 0.002
			if form.whole {
				off = 1
			}
			require.InDelta(t, r.at.Sub(requests()[0].at).Seconds(), e.job.Offset, off, name)
			require.InDelta(t, float64(r.ms)/1e3, e.took, 1e-6, name)
			if !form.whole {
				require.Equal(t, []string{r.key, r.up}, []string{string(e.job.Project), e.upstream}, name)
			}
		}
	}
}

// A line that cannot be read is reported and skipped.
func TestBadLines(t *testing.T) {
	const head, good = "time,key,duration\n", "5,a,1\n"
	long := strings.Repeat("x", 3*maxLine)
	for name, c := range map[string]struct{ text, want string }{
		"long":        {head + good + long + "\n" + good, "line 3: is longer than 1 MiB: xxx"},
		"long, last":  {head + good + good + long, "line 4: is longer than 1 MiB"},
		"stray quote": {head + good + `5,"a,1` + "\n" + good, `line 3: `},
		"control":     {head + good + "\x1b[2Jx\n" + good, "line 3: 1 values are not 3: ?[2Jx (left out; 1 such lines)"},
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
