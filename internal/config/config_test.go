package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/cli"
)

// Each file in testdata/bad has its fault told exactly so; FILE is its name.
func TestFaultsAreTold(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	require.NoError(t, err)
	require.Greater(t, len(files), 20)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".error")
			require.NoError(t, err)
			_, err = Load(file)
			require.Error(t, err)
			assert.Equal(t, strings.TrimSpace(string(want)), strings.ReplaceAll(err.Error(), file, "FILE"))
		})
	}
}

func TestGoodFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		_, err := Load(file)
		assert.NoError(t, err, file)
	}
}

// The file that names every key with its default is the default.
func TestDefaultsAreAsDocumented(t *testing.T) {
	got, err := Load("testdata/good/full.yaml")
	require.NoError(t, err)
	want := Default()
	want.Hosts = []string{"sidecar.internal"}
	want.Discovery.Static = []string{"127.0.0.1:9001", "127.0.0.1:9002"}
	want.Reports.Names = Names{Stalled: "rps_stalled_promises", Running: "rps_running"}
	assert.Equal(t, want, got)
}

// The README shows every section with its default.
func TestReadmeShowsTheDefaults(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(readme), "```yaml\n")
	require.True(t, ok)
	text, _, ok = strings.Cut(text, "```")
	require.True(t, ok)
	got, err := parse(cli.NewDocument("README.md", []byte(text)), func(*Config) {})
	require.NoError(t, err)
	want := Default()
	want.Hosts = []string{}
	want.Discovery.Static = []string{"127.0.0.1:9001", "127.0.0.1:9002"}
	want.Reports.Names = Names{Stalled: "ruleserver_stalled_joblets", Running: "ruleserver_jobs_running"}
	assert.Equal(t, want, got)
	sections := reflect.TypeFor[Config]()
	for i := range sections.NumField() {
		assert.Contains(t, "\n"+text, "\n"+sections.Field(i).Tag.Get("yaml")+":", "the README leaves a key out")
	}
}

func TestOverlayComesBeforeTheCheck(t *testing.T) {
	_, err := LoadOver("testdata/bad/no-discovery.yaml", func(c *Config) { c.Discovery.Static = []string{"127.0.0.1:1"} })
	assert.NoError(t, err)
}

func TestMissingAndHugeFiles(t *testing.T) {
	_, err := Load("testdata/nowhere.yaml")
	require.ErrorContains(t, err, "testdata/nowhere.yaml")
	huge := filepath.Join(t.TempDir(), "huge.yaml")
	require.NoError(t, os.WriteFile(huge, []byte(strings.Repeat("#\n", 1<<20)), 0o600))
	_, err = Load(huge)
	require.ErrorContains(t, err, "larger than 1048576 bytes")
}

func FuzzParse(f *testing.F) {
	for _, folder := range []string{"good", "bad"} {
		files, _ := filepath.Glob("testdata/" + folder + "/*.yaml")
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parse(cli.NewDocument("fuzz.yaml", text), func(*Config) {})
		if err != nil {
			assert.True(t, strings.HasPrefix(err.Error(), "fuzz.yaml"), "%v names no file", err)
			return
		}
		assert.NoError(t, c.Check())
		assert.Greater(t, c.Queue.Wait, time.Duration(0))
	})
}
