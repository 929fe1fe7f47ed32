package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/fakeupstream"
	"example.org/pilotfish/test/program"
)

// The jobs that a sidecar recorded are sent to two targets, with the same bodies.
func TestReplayOfARecordedDay(t *testing.T) {
	dir := t.TempDir()
	log := recorded(t, dir)
	bodies := filepath.Join(dir, "bodies", "bodies.jsonl")
	a, b := fakeupstream.New(t, fakeupstream.Options{}), fakeupstream.New(t, fakeupstream.Options{})
	code, out, stderr := tracelab("replay", log, "--bodies", bodies, "--to", a.URL, "--to", b.URL+"/", "--speed", "10", "--html", dir+"/page.html")
	require.Zero(t, code, stderr)
	assert.Contains(t, read(t, dir+"/page.html"), `"name":"`+b.URL+`","jobs":{"at":[0,`)
	for _, target := range []*fakeupstream.Upstream{a, b} {
		require.NoError(t, target.Await(t.Context(), func(jobs []fakeupstream.Job) bool { return len(jobs) == 6 }))
		got := map[string]string{} // jobs due at nearly the same time can overtake each other
		for _, j := range target.Jobs() {
			got[j.Header.Get("X-Request-Id")] = string(j.Body)
			assert.Empty(t, j.Header.Get("Authorization"), "headers are not recorded")
		}
		for i := range 6 {
			assert.Equal(t, job(i), got[fmt.Sprint("job-", i)])
		}
	}
	assert.Regexp(t, a.URL+` +6 +0 +`, out)
	for _, table := range []string{"duration_s", "wait_s", "slowdown"} {
		assert.Regexp(t, `(?s)\n`+table+` .*\n`+b.URL+` / `+a.URL+` +\d+\.\d\d`, out, "of jobs of high priority")
	}

	text := strings.Replace(read(t, bodies), `"job-0"`, `"other"`, 1)
	code, out, stderr = tracelab("replay", log, "--bodies", write(t, "b.jsonl", text), "--to", a.URL)
	require.Zero(t, code, stderr)
	assert.Contains(t, stderr, "1 of 6 jobs have no recorded body and are left out")
	assert.Regexp(t, a.URL+` +5 +0 +`, out)
}

func job(i int) string {
	return strings.Replace(fakeupstream.ExampleJob(), "{", fmt.Sprintf(`{"n":%d,`, i), 1)
}

// recorded sends six jobs, one after another, through a sidecar that writes a log and bodies. It returns the path of
// the log.
func recorded(t *testing.T, dir string) (log string) {
	t.Helper()
	pilotfish, err := program.Build(dir, "pilotfish")
	require.NoError(t, err)
	upstream := fakeupstream.New(t, fakeupstream.Options{})
	file := filepath.Join(dir, "pilotfish.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ndiscovery: {static: [%s]}\nlog: {bodies: %s}\n",
		upstream.Address(), filepath.Join(dir, "bodies")), 0o600))
	log = filepath.Join(dir, "pilotfish.log")
	to, err := os.Create(log)
	require.NoError(t, err)
	defer to.Close()
	sidecar := program.Launch(t, exec.Command(pilotfish, "serve", "--config", file), func(job []byte) {
		_, err := to.Write(append(job, '\n'))
		assert.NoError(t, err)
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for i := range 6 {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://"+sidecar.Jobs+"/v1/jobs", strings.NewReader(job(i)))
		require.NoError(t, err)
		r.Header = http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {fmt.Sprint("job-", i)}, "Authorization": {"secret"}}
		response, err := client.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
	}
	sidecar.Stop()
	return log
}
