package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// release builds the archive of this machine's architecture, in a folder of its own.
func release(t *testing.T, env ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "dist")
	cmd := exec.Command(filepath.Join(root, "tools", "release"), out, "1.2.3", runtime.GOARCH)
	cmd.Env = append(os.Environ(), env...)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	return out
}

func TestReleasesAreWholeAndTheSame(t *testing.T) {
	out := release(t)
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	require.NoError(t, err)
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = out
	require.NoError(t, check.Run())

	name := "pilotfish-1.2.3-linux-" + runtime.GOARCH
	must(t, "tar", "xzf", filepath.Join(out, name+".tar.gz"), "-C", out)
	for _, program := range []string{"pilotfish", "ruleserver", "tracelab"} {
		path := filepath.Join(out, name, program)
		version, err := run(path, "--version")
		require.NoError(t, err)
		assert.Regexp(t, `^`+program+` 1\.2\.3 `, version)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		folder, err := filepath.Abs(root)
		require.NoError(t, err)
		assert.NotContains(t, string(text), folder, "%s names the folder it was built in", program)
	}
	for _, path := range []string{"LICENSE", "README.md", "docs/operate.md", "deploy/systemd/pilotfish.service"} {
		assert.FileExists(t, filepath.Join(out, name, path))
	}

	again, err := os.ReadFile(filepath.Join(release(t, "TZ=Asia/Tokyo", "LC_ALL=C", "TMPDIR="+t.TempDir()), "SHA256SUMS"))
	require.NoError(t, err)
	assert.Equal(t, string(sums), string(again))
}
