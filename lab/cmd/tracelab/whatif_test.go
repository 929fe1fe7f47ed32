package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// accessLog is of 40 keys that go round four upstreams: each finds its data nowhere for a
// while, and takes ten times as long there.
func accessLog() string {
	var b strings.Builder
	b.WriteString("time,key,duration,upstream,hit\n")
	for i := range 2000 {
		key, hit := (i*i+i/7)%40, i >= 200
		took := 0.1
		if !hit {
			took = 1
		}
		fmt.Fprintf(&b, "%.2f,k%d,%.2f,u%d,%t\n", 1e9+float64(i)/20, key, took, i%4, hit)
	}
	return b.String()
}

func TestWhatif(t *testing.T) {
	log, page := write(t, "access.csv", accessLog()), t.TempDir()+"/page.html"
	code, out, stderr := tracelab("whatif", log, "--cached", "15", "--html", page)
	require.Zero(t, code, stderr)
	assert.Contains(t, out, "2,000 jobs over 1m40s. In the logs 90 % found their key cached")
	assert.Regexp(t, `\nleast-in-flight, 4 upstreams +\d`, out)
	assert.Regexp(t, `\npilotfish, 4 upstreams +\d`, out)
	assert.Regexp(t, `Upstreams needed for the waits of today: 4 in the present way, [1-4] with pilotfish`, out)
	assert.Contains(t, out, "- There are as many upstreams as the logs name: 4 (--upstreams).")
	assert.Contains(t, out, "- An upstream runs 5 jobs at one time: it had no more at one time in the logs (--cores).")
	assert.NotContains(t, out, "(--cached)", "it was given")
	html := read(t, page)
	assert.Contains(t, html, "pilotfish, 4 upstreams")
	assert.NotRegexp(t, `(?i)src=|href=|url\(`, html)

	code, again, stderr := tracelab("whatif", log, "--cached", "15")
	require.Zero(t, code, stderr)
	assert.Equal(t, out, again)
}

func TestWhatifRefuses(t *testing.T) {
	log := write(t, "a.csv", "time,key,duration\n5,a,1\n")
	for want, args := range map[string][]string{
		"the logs name no upstream: say how many there are with --upstreams": {log},
		`--present "x" is not one of expected, `:                             {log, "--present", "x"},
		"--sidecars and --jobs must be above 0":                              {log, "--sidecars", "0"},
		"there is no job in the log":                                         {write(t, "t.jsonl", `{"offset":0}`+"\n")},
	} {
		code, out, stderr := tracelab(append([]string{"whatif"}, args...)...)
		assert.Equal(t, 1, code, want)
		assert.Contains(t, stderr, want)
		assert.Empty(t, out)
	}
}
