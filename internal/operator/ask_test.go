package operator

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/cli"
)

// run runs a command line.
func run(args ...string) (code int, out, problems string) {
	var stdout, stderr bytes.Buffer
	p := cli.Program{Name: "pilotfish", Commands: []cli.Command{
		{Name: "top", Do: new(Top)}, {Name: "explain", Do: new(Explain)}, {Name: "probe", Do: new(Probe)}, {Name: "reload", Do: new(Reload)},
	}}
	code = p.Run(args, cli.Console{Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

// ask runs a command against an admin port that replies as told, by path and query.
func ask(t *testing.T, replies map[string]string, args ...string) (code int, out, problems string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply, ok := replies[r.URL.RequestURI()]
		if !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
			reply = `{"error":"no upstream is eligible"}`
		}
		_, _ = w.Write([]byte(reply))
	}))
	defer server.Close()
	return run(append(args, "--admin", strings.TrimPrefix(server.URL, "http://"))...)
}

func TestExplain(t *testing.T) {
	code, out, problems := ask(t, map[string]string{"/api/pick?priority=high&project=a%26b": `{"upstream":"b:1","ranking":[
		{"address":"b:1","cache":"cached","jobs":3,"cost":{"total":0.25,"wait":0.25}},
		{"address":"a:1","cache":"none","jobs":0,"cost":{"total":2.12345,"fetch":2,"placement":0.12345}},
		{"address":"c\u001b[2J:1","cache":"none","jobs":1}]}`,
		"/api/upstreams": `{"upstreams":[{"address":"b:1"},{"address":"d:1","why":"suspect","suspect":"it owes 3 answers"},{"address":"e:1","why":"breaker open"}]}`,
	}, "explain", "--project", "a&b", "--priority", "high")
	require.Zero(t, code, problems)
	assert.Equal(t, `a job of project a&b, priority high, would go to b:1

  cost  wait  fetch  placement  stop  jobs   cache  upstream
  0.25  0.25      0          0     0     3  cached       b:1
  2.12     0      2      0.123     0     0    none       a:1
     –     –      –          –     –     1    none   c?[2J:1

Costs are in seconds; the least wins. docs/policies.md says what they are made of.
left out: d:1: suspect: it owes 3 answers
left out: e:1: breaker open
`, out)
	code, out, problems = ask(t, map[string]string{"/api/upstreams": `{"upstreams":[{"address":"a:1","why":"draining"}]}`}, "explain")
	assert.Equal(t, 1, code)
	assert.Equal(t, "left out: a:1: draining\n", out)
	assert.Contains(t, problems, "replies 503 Service Unavailable no upstream is eligible")
	code, _, problems = ask(t, nil, "explain", "--priority", "urgent")
	assert.Equal(t, 2, code)
	assert.Contains(t, problems, `must be one of "low","high"`)
}

func TestTopWithoutATerminal(t *testing.T) {
	now := `{"at":"2026-01-02T03:04:05Z","in_flight":4,"waiting":1,"not_ready":"shutting down",
		"capacity":{"now":{"full":0.451},"busiest_minute":{"full":1.2},"flat":{"upstreams":5,"change":2}},
		"fleet":{"mode":"growing","deadline_in_seconds":90,"windows":[{"covered_seconds":50,"all":{"jobs":100,"complete":98,"first_byte_seconds":{"p50":0.25,"p99":1.5}}}]},
		"upstreams":[
			{"address":"a:1","eligible":true,"jobs":2,"in_flight":1,"mode":"flat","report_age_seconds":1.5,"breaker":{"state":"closed"}},
			{"address":"b:1","eligible":true,"jobs":7,"in_flight":2,"stalled":3,"wait_seconds":2.5,"latency_seconds":0.5,"minute_jobs":60,"minute_lost":2,"rate":1.5,"cached_projects":4,"mode":"losing","report_age_seconds":-1,"breaker":{"state":"closed"}},
			{"address":"c:1","why":"breaker open","wait_seconds":-1,"mode":"unknown","report_age_seconds":-1,"breaker":{"state":"open"}}]}`
	code, out, problems := ask(t, map[string]string{"/api/now": now}, "top", "--rows", "2")
	require.Zero(t, code, problems)
	_, out, _ = strings.Cut(out, "  ") // the local time
	assert.Equal(t, `growing, the first deadline passes in 90 s, takes no jobs: shutting down
2 jobs/s, 98 of 100 complete in a minute, 4 at upstreams, 1 waiting, 2 of 3 upstreams eligible
first byte p50 0.25 s, p99 1.5 s; last byte p50 0 s, p99 0 s
45 % full, 120 % in the busiest minute; 5 upstreams would serve every job alike (+2)

  jobs  own  stalled     wait  jobs/min  lost/min  first byte   rate  cached  report  breaker     mode         state  upstream
     0    0        0  unknown         0         0         0 s    0/s       0    none     open  unknown  breaker open       c:1
     7    2        3    2.5 s        60         2       0.5 s  1.5/s       4    none   closed   losing      eligible       b:1
and 1 more; --rows shows them
`, out)
}

func TestTopRefuses(t *testing.T) {
	for want, replies := range map[string]map[string]string{
		"is no sidecar's admin port: invalid character '<'":       {"/api/now": "<html>"},
		"is no sidecar's admin port: it tells no windows":         {"/api/now": "{}"},
		"replies 503 Service Unavailable no upstream is eligible": {},
	} {
		code, out, problems := ask(t, replies, "top")
		assert.Equal(t, 1, code, want)
		assert.Empty(t, out)
		assert.Contains(t, problems, want)
	}
	code, _, problems := ask(t, nil, "top", "--every", "1ms")
	assert.Equal(t, 1, code)
	assert.Contains(t, problems, "--every must be at least 100ms")
	code, _, problems = run("top", "--admin", "127.0.0.1:1")
	assert.Equal(t, 1, code)
	assert.Contains(t, problems, "no sidecar replies at 127.0.0.1:1: ")
	assert.Contains(t, problems, "name its admin port with --admin")
}

func TestProbe(t *testing.T) {
	code, out, problems := ask(t, map[string]string{"/readyz": "ready\n", "/healthz": "ok\n"}, "probe")
	assert.Zero(t, code, problems)
	assert.Equal(t, "ready\n", out)
	code, out, _ = ask(t, map[string]string{"/healthz": "ok\n"}, "probe", "--live")
	assert.Zero(t, code)
	assert.Equal(t, "ok\n", out)
	code, _, problems = ask(t, nil, "probe")
	assert.Equal(t, 1, code)
	assert.Contains(t, problems, "replies 503 Service Unavailable no upstream is eligible")
	code, _, problems = run("probe", "--admin", "unix:"+t.TempDir()+"/none")
	assert.Equal(t, 1, code)
	assert.Contains(t, problems, "no sidecar replies at unix:")
}

// What a sidecar says that is not JSON is shown, and steers no terminal.
func TestProbeTellsWhy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no upstreams are known \x1b[2Jyet", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	code, _, problems := run("probe", "--admin", strings.TrimPrefix(server.URL, "http://"))
	assert.Equal(t, 1, code)
	assert.Contains(t, problems, "no upstreams are known ?[2Jyet")
}
