//go:build cluster || mesh || clients || soak

package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/test/program"
)

// jobLines decodes the lines of ended jobs in a log.
func jobLines[L any](t *testing.T, log string) []L {
	t.Helper()
	return logLines[L](t, log, `job"`)
}

// logLines decodes the lines of a log whose message starts with message.
func logLines[L any](t *testing.T, log, message string) (lines []L) {
	t.Helper()
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if bytes.Contains(scanner.Bytes(), []byte(`"msg":"`+message)) {
			var l L
			require.NoError(t, json.Unmarshal(scanner.Bytes(), &l), "%s: %s", log, scanner.Text())
			lines = append(lines, l)
		}
	}
	require.NoError(t, scanner.Err())
	return lines
}

// tool returns the path of a program that make builds into bin.
func tool(t *testing.T, name, variable, build string) string {
	t.Helper()
	path, err := filepath.Abs(cmp.Or(os.Getenv(variable), filepath.Join("..", "..", "bin", name)))
	require.NoError(t, err)
	_, err = os.Stat(path)
	require.NoError(t, err, "build it: %s", build)
	return path
}

// ruleserver builds the reference server once, and returns its path.
var ruleserver = sync.OnceValues(func() (string, error) { return program.Build(filepath.Dir(pilotfish), "ruleserver") })

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	_, err = strconv.ParseUint(port, 10, 16)
	require.NoError(t, err)
	return port
}
