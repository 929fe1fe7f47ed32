package deploy

import (
	"debug/buildinfo"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// programs are the programs in each archive.
var programs = []string{"pilotfish", "ruleserver", "tracelab"}

// release builds the archives of these systems in a temporary folder.
func release(t *testing.T, systems []string, env ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "dist")
	cmd := exec.Command(filepath.Join(root, "tools", "release", "build"), append([]string{out, "1.2.3"}, systems...)...)
	cmd.Env = append(os.Environ(), env...)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	return out
}

func TestReleasesAreCompleteAndReproducible(t *testing.T) {
	here := "linux-" + runtime.GOARCH
	out := release(t, []string{here, "darwin-arm64"})
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	require.NoError(t, err)
	check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = out
	require.NoError(t, check.Run())

	name := "pilotfish-1.2.3-" + here
	must(t, "tar", "xzf", filepath.Join(out, name+".tar.gz"), "-C", out)
	for _, program := range programs {
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
	linked(t, filepath.Join(out, name))
	declared(t, filepath.Join(out, name))
	macOS(t, out, "pilotfish-1.2.3-darwin-arm64", filepath.Join(out, name))
	installed(t, filepath.Join(out, name+".deb"), "dpkg", "--force-not-root", "--force-script-chrootless", "--root=%s", "--install")
	installed(t, filepath.Join(out, name+".rpm"), "rpm", "--root=%s", "--install", "--nodeps", "--replacepkgs")

	again, err := os.ReadFile(filepath.Join(release(t, []string{here}, "TZ=Asia/Tokyo", "LC_ALL=C", "TMPDIR="+t.TempDir()), "SHA256SUMS"))
	require.NoError(t, err)
	assert.Subset(t, strings.Split(string(sums), "\n"), strings.Split(string(again), "\n"))
}

// macOS checks that the programs of an archive are for macOS, and that its other files equal those of the archive for
// Linux.
func macOS(t *testing.T, out, name, linux string) {
	t.Helper()
	must(t, "tar", "xzf", filepath.Join(out, name+".tar.gz"), "-C", out)
	for _, program := range programs {
		built, err := buildinfo.ReadFile(filepath.Join(out, name, program))
		require.NoError(t, err)
		assert.Subset(t, built.Settings, []debug.BuildSetting{{Key: "GOOS", Value: "darwin"}, {Key: "GOARCH", Value: "arm64"}}, program)
	}
	files := func(folder string) (paths []string) {
		require.NoError(t, fs.WalkDir(os.DirFS(folder), ".", func(path string, _ fs.DirEntry, err error) error {
			if !strings.HasPrefix(path, "licences/") { // the libraries differ between systems
				paths = append(paths, path)
			}
			return err
		}))
		return paths
	}
	assert.Equal(t, files(linux), files(filepath.Join(out, name)))
	declared(t, filepath.Join(out, name))
	assert.NoFileExists(t, filepath.Join(out, name+".deb"))
}

// declared checks that the SBOM of each program of the folder lists each linked module, and
// that the folder has the module's licence.
func declared(t *testing.T, folder string) {
	t.Helper()
	for _, program := range programs {
		built, err := buildinfo.ReadFile(filepath.Join(folder, program))
		require.NoError(t, err)
		require.Greater(t, len(built.Deps), 5)
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
			if m.Replace != nil { // pilotfish's module, which the lab replaces
				continue
			}
			assert.Contains(t, sbom.Components, struct{ Name, Version string }{m.Path, m.Version}, program)
			licences, err := filepath.Glob(filepath.Join(folder, "licences", m.Path, "[LNC]*"))
			require.NoError(t, err)
			assert.NotEmpty(t, licences, "no licence of %s", m.Path)
		}
	}
	assert.FileExists(t, filepath.Join(folder, "licences", "go", "LICENSE"))
	assert.FileExists(t, filepath.Join(folder, "licences", "uplot", "LICENSE"))
}

// linked checks that each link in a folder's documents leads to a file of the folder.
func linked(t *testing.T, folder string) {
	t.Helper()
	links := 0
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" || strings.Contains(path, "/licences/") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`).FindAllSubmatch(text, -1) {
			if target := string(m[1]); !strings.Contains(target, "://") {
				links++
				_, err := os.Stat(filepath.Join(filepath.Dir(path), target))
				assert.NoError(t, err, "a link of %s", path)
			}
		}
		return err
	}))
	assert.Greater(t, links, 100)
}

// installed installs a package into an empty root, where systemd and pilotfish must accept its files. Installing it
// again keeps a changed configuration.
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
	for _, path := range []string{"doc/pilotfish/licences", "pilotfish/prometheus/alerts.yml", "pilotfish/grafana/dashboard.json"} {
		_, err := os.Stat(filepath.Join(dir, "usr/share", path))
		assert.NoError(t, err)
	}
	linked(t, filepath.Join(dir, "usr/share/doc/pilotfish"))
	writeTo(t, filepath.Join(dir, "etc/pilotfish/pilotfish.yaml"), []byte("# mine\n"))
	must(t, command[0], append(command[1:], file)...)
	kept, err := os.ReadFile(filepath.Join(dir, "etc/pilotfish/pilotfish.yaml"))
	require.NoError(t, err)
	assert.Equal(t, "# mine\n", string(kept))
	targets, err := filepath.Glob("/usr/lib/systemd/system/*.target")
	require.NoError(t, err)
	must(t, "cp", append(targets, filepath.Join(dir, "usr/lib/systemd/system"))...)
	assert.Empty(t, must(t, "systemd-analyze", "verify", "--man=no", "--root="+dir, "pilotfish.service", "pilotfish.socket"))
}

func TestWorkflowsAreValid(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for i := range files {
		files[i], err = filepath.Abs(files[i])
		require.NoError(t, err)
	}
	must(t, "go", append([]string{"-C", filepath.Join(root, "tools", "release"), "tool", "actionlint", "-shellcheck=", "-pyflakes="}, files...)...)
}
