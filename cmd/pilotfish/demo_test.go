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

// README.md shows what the demo prints, but for addresses and times: which address is
// which stays.
func TestTheDemoPrintsWhatReadmeShows(t *testing.T) {
	code, out, stderr := runOn("", "demo", "--once", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	require.Zero(t, code, stderr)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(readme), "make demo DEMO=--once\n")
	require.True(t, ok)
	shown, _, ok := strings.Cut(rest, "```\n")
	require.True(t, ok)
	assert.Equal(t, masked(shown), masked(out))
}

// masked is a text without its times, and with letters for its addresses.
func masked(text string) string {
	text = regexp.MustCompile(`\d+(\.\d+)?(ms|s| s)\b`).ReplaceAllString(text, "TIME")
	letters := map[string]string{}
	text = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllStringFunc(text, func(address string) string {
		if letters[address] == "" {
			letters[address] = string(rune('A' + len(letters)))
		}
		return letters[address]
	})
	return strings.TrimSpace(text)
}

func TestATakenPortOfTheDemo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for _, flag := range []string{"--listen", "--admin"} {
		args := []string{"demo", "--once", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", flag, l.Addr().String()}
		code, _, stderr := runOn("", args...)
		assert.Equal(t, 1, code)
		port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		assert.Equal(t, "pilotfish: cannot listen on 127.0.0.1:"+port+": bind: address already in use; choose another address with "+flag+
			". Port 0 is any free port: make demo DEMO=\"--listen 127.0.0.1:0 --admin 127.0.0.1:0\"\n", stderr)
	}
}
