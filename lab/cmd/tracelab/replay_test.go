package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/ruleserver"
)

// A trace goes to a server, whose answers are counted.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	settings := ruleserver.Defaults()
	settings.TrustCost = true
	server, err := ruleserver.New(ruleserver.Config{Settings: settings, Feeds: os.DirFS(dir)})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	web := httptest.NewServer(server.Handler())
	t.Cleanup(web.Close)

	jobs := `{"offset":0,"project":1,"priority":"high","kind":"prefetch","load_s":1,"after":null}
{"offset":1,"project":1,"priority":"low","kind":"process","load_s":1,"operators_s":2,"after":1}
{"offset":2,"project":2,"priority":"high","kind":"process","load_s":1,"operators_s":1,"after":null}
`
	file := filepath.Join(dir, "trace.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(jobs), 0o600))
	var out, problems bytes.Buffer
	code := run([]string{"replay", file, "--target=" + web.URL, "--speed=100", "--feeds=" + dir}, &out, &problems)
	require.Equal(t, 0, code, problems.String())
	text := regexp.MustCompile(" +").ReplaceAllString(out.String(), " ")
	for _, want := range []string{"\nreplay ", "\nanswered 3\n", "\nfetches per 1,000 666.7\n"} {
		assert.Contains(t, text, want)
	}
	few := t.TempDir()
	require.Equal(t, 0, run([]string{"replay", file, "--target=" + web.URL, "--jobs=1", "--speed=100", "--feeds=" + few}, &out, &problems))
	assert.FileExists(t, filepath.Join(few, "1.csv"))
	assert.NoFileExists(t, filepath.Join(few, "2.csv"), "its job is not sent")
	assert.Equal(t, 1, run([]string{"replay", file, "--target=http://192.0.2.1:80"}, &out, &problems))
	assert.Contains(t, problems.String(), `tracelab: replay: target: "http://192.0.2.1:80": is not on this machine`)
}
