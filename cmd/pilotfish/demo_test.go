package main

import (
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The demo prints every line of its transcript in README.md, except for addresses and times.
func TestTheDemoPrintsWhatReadmeShows(t *testing.T) {
	code, out, stderr := runOn("demo", "--once", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	require.Zero(t, code, stderr)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(readme), "```\n1. A job of project")
	require.True(t, ok)
	shown, _, ok := strings.Cut("1. A job of project"+rest, "```\n")
	require.True(t, ok)
	masked := regexp.MustCompile(`\d+(\.\d+)? ?(ms|s)\b|127\.0\.0\.1:\d+`)
	printed := masked.ReplaceAllString(out, "X")
	for line := range strings.Lines(masked.ReplaceAllString(shown, "X")) {
		assert.Contains(t, printed, line)
	}
}

func TestATakenPortOfTheDemo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for _, flag := range []string{"--listen", "--admin"} {
		args := []string{"demo", "--once", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", flag, l.Addr().String()}
		code, _, stderr := runOn(args...)
		assert.Equal(t, 1, code)
		port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		assert.Equal(t, "pilotfish: cannot listen on 127.0.0.1:"+port+": bind: address already in use; choose another address with "+flag+
			". Port 0 is any free port: make demo DEMO=\"--listen 127.0.0.1:0 --admin 127.0.0.1:0\"\n", stderr)
	}
}
