package operator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/admin"
	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/pool"
	"example.org/pilotfish/internal/quality"
)

// run runs a command line.
func run(args ...string) (code int, out, problems string) {
	var stdout, stderr bytes.Buffer
	var commands struct {
		Top     Top     `cmd:""`
		Explain Explain `cmd:""`
		Probe   Probe   `cmd:""`
		Reload  Reload  `cmd:""`
		Drain   Drain   `cmd:""`
		Undrain Drain   `cmd:""`
	}
	commands.Undrain.End = true
	p := cli.Program{Name: "pilotfish", Do: &commands}
	code = p.Run(args, cli.Console{Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

// ask runs a command against an admin port with the given replies, by path and query, and
// records the requests.
func ask(t *testing.T, replies map[string]string, args ...string) (code int, out, problems string) {
	t.Helper()
	asked = nil
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.RequestURI()+" "+string(body))
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

var asked []string

// expected returns the output of a command, which is in a file.
func expected(t *testing.T, command string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + command + ".txt")
	require.NoError(t, err)
	return string(text)
}

// The token is sent only to the admin port of the command line.
func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Error("redirected, with " + r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("s3cret"), 0o600))
	code, _, problems := run("reload", "--admin", strings.TrimPrefix(server.URL, "http://"), "--token-file", token)
	assert.NotZero(t, code)
	assert.Contains(t, problems, "replies 307 Temporary Redirect ; it redirects to \""+elsewhere.URL+"\", which is not followed")
}

// Of an unexpected reply, JSON or text, the beginning is shown, without control characters.
func TestErrorsHaveNoControlCharacters(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for reply, want := range map[string]string{
		`{"error":"\u001b[2J` + long + `"}`:         "503 Service Unavailable ?[2Jxxx",
		"no upstreams are known \x1b[2Jyet " + long: "no upstreams are known ?[2Jyet xxx",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, reply, http.StatusServiceUnavailable)
		}))
		code, _, problems := run("probe", "--admin", strings.TrimPrefix(server.URL, "http://"))
		server.Close()
		assert.Equal(t, 1, code)
		assert.Contains(t, problems, want)
		assert.NotContains(t, problems, "\x1b")
		assert.Less(t, len(problems), 700)
	}
}

// The body of a job is sent unmodified, and determines its project.
func TestExplainABody(t *testing.T) {
	replies := map[string]string{"/api/upstreams": "{}", "/api/pick": `{"project":"llama/0123","priority":"low","upstream":"a:1","ranking":[{"address":"a:1","cache":"assumed","found":0.475}]}`}
	file := filepath.Join(t.TempDir(), "job.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"model":"llama"}`), 0o600))
	code, out, problems := ask(t, replies, "explain", "--body", file)
	require.Zero(t, code, problems)
	assert.Equal(t, []string{`POST /api/pick {"model":"llama"}`, "GET /api/upstreams "}, asked)
	assert.Contains(t, out, "a job of project llama/0123, priority low, would go to a:1\n")
	assert.Contains(t, out, "48 %")
	code, _, problems = ask(t, replies, "explain", "--body", file+"x")
	assert.Equal(t, cli.Usage, code)
	assert.Contains(t, problems, "--body: open ")
}

func TestExplain(t *testing.T) {
	code, out, problems := ask(t, map[string]string{"/api/pick?priority=high&project=a%26b": `{"project":"a&b","priority":"high","upstream":"b:1","ranking":[
		{"address":"b:1","cache":"cached","found":1,"jobs":3,"probe":true,"expected_seconds":2.5,"expected_by":"length_key","cost":{"total":0.25,"wait":0.25}},
		{"address":"a:1","cache":"none","jobs":0,"probe":true,"cost":{"total":2.12345,"fetch":2,"placement":0.12345}},
		{"address":"c\u001b[2J:1","cache":"none","jobs":1,"shadow":true}]}`,
		"/api/upstreams": `{"upstreams":[{"address":"b:1"},{"address":"d:1","why":"suspect: it owes 3 answers"},{"address":"e:1","why":"breaker open"}]}`,
	}, "explain", "--project", "a&b", "--priority", "high")
	require.Zero(t, code, problems)
	assert.Equal(t, expected(t, "explain"), out)
	code, out, problems = ask(t, map[string]string{ // panic: breakers are ignored
		"/api/pick?priority=low&project=": `{"upstream":"a:1","ranking":[{"address":"a:1"}]}`,
		"/api/upstreams":                  `{"upstreams":[{"address":"a:1","why":"breaker opened"},{"address":"b:1","why":"draining"}]}`,
	}, "explain")
	require.Zero(t, code, problems)
	assert.NotContains(t, out, "left out: a:1")
	assert.Contains(t, out, "left out: b:1")
	for pick, want := range map[string]string{`"heavy":true`: "left out: b:1: not for heavy jobs\n", `"heavy":false`: "left out: a:1: for heavy jobs\n"} {
		picked := map[string]string{`"heavy":true`: "a:1", `"heavy":false`: "b:1"}[pick]
		_, out, _ = ask(t, map[string]string{
			"/api/pick?priority=low&project=": `{"upstream":"` + picked + `","ranking":[{"address":"` + picked + `",` + pick + `}]}`,
			"/api/upstreams":                  `{"upstreams":[{"address":"a:1","heavy":true},{"address":"b:1"}]}`,
		}, "explain")
		assert.Equal(t, want, out[strings.LastIndex(out, "left out"):])
	}
	code, out, problems = ask(t, map[string]string{"/api/upstreams": `{"upstreams":[{"address":"a:1","why":"draining"}]}`}, "explain")
	assert.Equal(t, 1, code)
	assert.Equal(t, "left out: a:1: draining\n", out)
	assert.Contains(t, problems, "replies 503 Service Unavailable no upstream is eligible")
	code, _, problems = ask(t, nil, "explain", "--priority", "urgent")
	assert.Equal(t, 2, code)
	assert.Contains(t, problems, `must be one of "low","high"`)
}

func TestDrain(t *testing.T) {
	for _, c := range []struct{ command, address, asked, out string }{
		{"drain", "a:1", "POST /api/upstreams/a:1/drain ", "a:1 gets no new jobs from this sidecar\n"},
		{"undrain", "[::1]:2", "DELETE /api/upstreams/%5B::1%5D:2/drain ", "[::1]:2 gets jobs again\n"},
		{"drain", "unix:/run/a", "POST /api/upstreams/unix:%2Frun%2Fa/drain ", "unix:/run/a gets no new jobs from this sidecar\n"},
	} {
		path := strings.Fields(c.asked)[1]
		code, out, problems := ask(t, map[string]string{path: ""}, c.command, c.address)
		require.Zero(t, code, problems)
		assert.Equal(t, []string{c.asked}, asked)
		assert.Equal(t, c.out, out)
	}
	code, _, problems := ask(t, nil, "drain", "c:3")
	assert.Equal(t, 1, code)
	assert.Contains(t, problems, "no upstream is eligible")
}

func TestTopWithoutATerminal(t *testing.T) {
	minute := quality.Window{Covered: 50, All: quality.Figures{
		Jobs: 100, Complete: 95, Failed: 3, Partial: 1, Absent: 1, FirstByte: quality.Quantiles{P50: 0.25, P99: 1534.5},
		Data: quality.CacheHits{Jobs: 80, Found: 79, Shadowed: 80, ShadowFound: 20},
	}}
	row := func(s pool.State, mode quality.Mode, failed uint64) quality.Upstream {
		s.Status = cmp.Or(s.Why, "eligible")
		return quality.Upstream{State: s, Mode: mode, MinuteAttempts: 20 * failed, MinuteFailed: failed, MinuteData: quality.CacheHits{Jobs: 2 * failed, Found: failed}}
	}
	now, err := json.Marshal(admin.Now{
		InFlight: 4, Waiting: 1, NotReady: "shutting down", Shadow: "baseline",
		Warnings: []string{`configuration refused since 2026-03-14 19:17 UTC, the previous one stays in force: p.yaml:3:5: log.jobs: "some" is not one of all, failed, none`},
		View: quality.View{
			Panic: true,
			Capacity: &quality.Advice{Fleet: quality.Fleet{Upstreams: 3}, Full: 0.451, FullBusiest: 1.2, Needed: 5, ForTarget: new(4), CostPerJob: new(0.25),
				ProjectCosts: []quality.ProjectCost{{Project: "a\x1b", Jobs: 3, Cost: 2}, {Jobs: 1, Cost: 0.5}, {Project: "c", Cost: 0.25}, {Project: "d", Cost: 0.2}, {Project: "e", Cost: 0.1}, {Rest: true, Cost: 0.4}}},
			Fleet: quality.Status{Mode: quality.QueueGrows, Text: quality.QueueGrows.Text() + "; " + quality.Panic, DeadlineSeconds: new(90.0), Windows: []quality.Window{minute}},
			Upstreams: []quality.Upstream{
				row(pool.State{Upstream: pool.Upstream{Address: "z:1"}, Eligible: true, Jobs: 1}, quality.Steady, 0),
				row(pool.State{Upstream: pool.Upstream{Address: "10.0.0.10:80"}, Eligible: true, Jobs: 9, ReportAge: 1.5}, quality.Steady, 0),
				row(pool.State{Upstream: pool.Upstream{Address: "10.0.0.9:80"}, Eligible: true, Jobs: 9, ReportAge: 1.5}, quality.Steady, 0),
				row(pool.State{Upstream: pool.Upstream{Address: "[2001:db8:0:1:1:1:1:1]:8080"}, Eligible: true, Jobs: 12}, quality.Steady, 0),
				row(pool.State{
					Upstream: pool.Upstream{Address: "b:1"}, Eligible: true, Jobs: 7, InFlight: 2, Stalled: 3, Wait: 2.5, Latency: 0.5, Rate: 1.5,
					Cached: 4, ReportAge: -1,
				}, "lo\x1b[in", 3),
				row(pool.State{Upstream: pool.Upstream{Address: "c:1"}, Why: "breaker opened: 5 of the last 10 jobs failed, and so did at least half of the jobs of all sidecars", Wait: -1, ReportAge: -1}, quality.Unknown, 0),
			},
		},
	})
	require.NoError(t, err)
	code, out, problems := ask(t, map[string]string{"/api/now": string(now)}, "top", "--rows", "5")
	require.Zero(t, code, problems)
	_, out, _ = strings.Cut(out, " ") // without the local time
	assert.Equal(t, expected(t, "top"), out)
	for _, line := range strings.Split(out, "\n") {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
	}
}

func TestTopSaysThatNoJobNamesAProject(t *testing.T) {
	const now = `{"fleet": {"mode": "steady", "windows": [{"all": {"jobs": 9, "complete": %d, "data": {"jobs": %d}}}]}}`
	for counts, said := range map[[2]int]bool{{9, 0}: true, {9, 1}: false, {0, 0}: false} {
		_, out, _ := ask(t, map[string]string{"/api/now": fmt.Sprintf(now, counts[0], counts[1])}, "top")
		assert.Equal(t, said, strings.Contains(out, "no job names a project"), counts)
	}
}

func TestTopRefuses(t *testing.T) {
	for reply, want := range map[string]string{
		"<html>": "is no sidecar's admin port: invalid character '<'",
		"{}":     "is no sidecar's admin port: its reply has no windows",
	} {
		code, out, problems := ask(t, map[string]string{"/api/now": reply}, "top")
		assert.Equal(t, 1, code, want)
		assert.Empty(t, out)
		assert.Contains(t, problems, want)
	}
	jobs := httptest.NewServer(http.NotFoundHandler()) // the port for jobs passes the request to an upstream
	defer jobs.Close()
	for want, args := range map[string][]string{
		"--every must be at least 100ms":                                      {"--every", "1ms"},
		"; name the sidecar's admin port with --admin, not the port for jobs": {"--admin", strings.TrimPrefix(jobs.URL, "http://")},
		"no sidecar replies at 127.0.0.1:1: ":                                 {"--admin", "127.0.0.1:1"},
		`--admin: "http://127.0.0.1:9180/" is a URL; write 127.0.0.1:9180`:    {"--admin", "http://127.0.0.1:9180/"},
	} {
		code, _, problems := run(append([]string{"top"}, args...)...)
		assert.NotZero(t, code, want)
		assert.Contains(t, problems, want)
	}
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
