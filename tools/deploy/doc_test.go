// Package deploy checks deploy/ against the types and the parsers of the
// programs that read it, and against pilotfish itself.
package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the repository's root.
const root = "../.."

// read returns a file of deploy/.
func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root, "deploy"}, path...)...))
	require.NoError(t, err)
	return text
}

// write writes text to a file in a temporary directory of the test.
func write(t *testing.T, name string, text []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// run runs a command and returns its output.
func run(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	return string(out), err
}

// must runs a command that must succeed, and returns its output.
func must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := run(name, args...)
	require.NoError(t, err, "%s %q: %s", name, args, out)
	return out
}
