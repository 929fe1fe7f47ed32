package deploy

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// release builds the archive of this machine's architecture, in a folder of its own.
func release(t *testing.T, env ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "dist")
	cmd := exec.Command(filepath.Join(root, "tools", "release", "build"), out, "1.2.3", runtime.GOARCH)
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
	for _, program := range []string{"pilotfish", "ruleserver"} {
		path := filepath.Join(out, name, program)
		version, err := run(path, "--version")
		require.NoError(t, err)
		assert.Regexp(t, `^`+program+` 1\.2\.3 \(commit [0-9a-f]{12}\) `, version)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		folder, err := filepath.Abs(root)
		require.NoError(t, err)
		assert.NotContains(t, string(text), folder, "%s names the folder it was built in", program)
	}
	for _, path := range []string{"LICENSE", "README.md", "SECURITY.md", "docs/operate.md", "deploy/systemd/pilotfish.service"} {
		assert.FileExists(t, filepath.Join(out, name, path))
	}
	declared(t, filepath.Join(out, name))
	installed(t, filepath.Join(out, name+".deb"), "dpkg", "--force-not-root", "--force-script-chrootless", "--root=%s", "--install")
	installed(t, filepath.Join(out, name+".rpm"), "rpm", "--root=%s", "--install", "--nodeps")

	again, err := os.ReadFile(filepath.Join(release(t, "TZ=Asia/Tokyo", "LC_ALL=C", "TMPDIR="+t.TempDir()), "SHA256SUMS"))
	require.NoError(t, err)
	assert.Equal(t, string(sums), string(again))
}

// declared checks that each module that is linked into a program of the folder is in the
// program's SBOM, and that its licence is there.
func declared(t *testing.T, folder string) {
	t.Helper()
	for _, program := range []string{"pilotfish", "ruleserver"} {
		built, err := buildinfo.ReadFile(filepath.Join(folder, program))
		require.NoError(t, err)
		require.Greater(t, len(built.Deps), 10)
		text, err := os.ReadFile(filepath.Join(folder, program+".cdx.json"))
		require.NoError(t, err)
		var sbom struct {
			Format     string `json:"bomFormat"`
			Metadata   struct{ Component struct{ Version string } }
			Components []struct{ Name, Version string }
		}
		require.NoError(t, json.Unmarshal(text, &sbom))
		assert.Equal(t, "CycloneDX", sbom.Format)
		assert.Equal(t, "v1.2.3", sbom.Metadata.Component.Version)
		for _, m := range built.Deps {
			assert.Contains(t, sbom.Components, struct{ Name, Version string }{m.Path, m.Version}, program)
			licences, err := filepath.Glob(filepath.Join(folder, "licences", m.Path, "[LNC]*"))
			require.NoError(t, err)
			assert.NotEmpty(t, licences, "no licence of %s", m.Path)
		}
	}
	assert.FileExists(t, filepath.Join(folder, "licences", "go", "LICENSE"))
	assert.FileExists(t, filepath.Join(folder, "licences", "uplot", "LICENSE"))
}

// installed installs a package into an empty root, where systemd and pilotfish must accept what it brings.
func installed(t *testing.T, file string, command ...string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "var/lib/dpkg/updates"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "var/lib/dpkg/info"), 0o755))
	writeTo(t, filepath.Join(dir, "var/lib/dpkg/status"), nil)
	for i := range command {
		command[i] = strings.Replace(command[i], "%s", dir, 1)
	}
	must(t, command[0], append(command[1:], file)...)

	must(t, filepath.Join(dir, "usr/bin/pilotfish"), "check", filepath.Join(dir, "etc/pilotfish/pilotfish.yaml"))
	assert.DirExists(t, filepath.Join(dir, "usr/share/doc/pilotfish/licences"))
	targets, err := filepath.Glob("/usr/lib/systemd/system/*.target")
	require.NoError(t, err)
	must(t, "cp", append(targets, filepath.Join(dir, "usr/lib/systemd/system"))...)
	assert.Empty(t, must(t, "systemd-analyze", "verify", "--man=no", "--root="+dir, "pilotfish.service", "pilotfish.socket"))
}

func TestTheWorkflowsAreAccepted(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for i := range files {
		files[i], err = filepath.Abs(files[i])
		require.NoError(t, err)
	}
	must(t, "go", append([]string{"-C", filepath.Join(root, "tools", "release"), "tool", "actionlint", "-shellcheck=", "-pyflakes="}, files...)...)
}
