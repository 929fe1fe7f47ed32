package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/cli"
	"example.org/pilotfish/internal/discovery"
	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/settings"
	"example.org/pilotfish/pkg/selection"
)

// Each file in testdata/bad gives exactly the errors in its .error file. Each file in testdata/unwise is valid and gives
// exactly the warnings in its file. Those in testdata/good give neither. FILE is the file's name, KINDS are the kinds
// of sources, and POLICIES the selection policies.
func TestFaultsAndWarnings(t *testing.T) {
	for folder, least := range map[string]int{"bad": 21, "unwise": 5, "good": 1} {
		files, err := filepath.Glob("testdata/" + folder + "/*.yaml")
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(files), least)
		for _, file := range files {
			_, warnings, err := Load(file)
			var got []string
			if assert.Equal(t, folder == "bad", err != nil, "%s: %v", file, err); err != nil {
				got = append(got, err.Error())
				warnings = nil
			}
			for _, w := range warnings {
				got = append(got, w.Error())
			}
			want, _ := os.ReadFile(strings.TrimSuffix(file, ".yaml") + map[string]string{"bad": ".error", "unwise": ".warning"}[folder])
			assert.Equal(t, strings.TrimSpace(string(want)), strings.NewReplacer(file, "FILE", discovery.Kinds(), "KINDS", strings.Join(selection.Names(), ", "), "POLICIES").Replace(strings.Join(got, "\n")), file)
		}
	}
}

// The old name of a key works, with a warning. Together with the new name it is unknown.
func TestRenamedKeys(t *testing.T) {
	for old, now := range map[string]string{
		"discovery: {keep_last: 1s}":  "discovery: {empty_after: 1s}",
		"discovery:\n  keep_last: 1s": "discovery:\n  empty_after: 1s",
		"reports: {health_path: /}":   "reports: {health_check_path: /}",
		"reports: {names: {read: a}}": "reports: {names: {prefix_cache: a}}",
		"job: {queue: /a}":            "job: {queue_timeout: /a}",
		"job: {evaluate: /a}":         "job: {first_byte_timeout: /a}",
		"job: {stream: /a}":           "job: {stream_timeout: /a}",
	} {
		got, warnings, err := Parse(cli.NewDocument("F", []byte(old)))
		want, none, sameErr := Parse(cli.NewDocument("F", []byte(now)))
		assert.Equal(t, want, got, old)
		assert.Equal(t, fmt.Sprint(sameErr), fmt.Sprint(err), old)
		if assert.Len(t, warnings, len(none)+1, old) {
			assert.Contains(t, warnings[0].Error(), "the key is now ", old)
			assert.Contains(t, warnings[0].Error(), "; the old name still works", old)
		}
	}
	_, _, err := Parse(cli.NewDocument("F", []byte("discovery: {keep_last: 1s, empty_after: 2s}")))
	assert.ErrorContains(t, err, "discovery.keep_last: unknown key")
	_, _, err = Parse(cli.NewDocument("F", []byte("discovery: {keep_last: -1s}")))
	assert.ErrorContains(t, err, "F:1:24: discovery.empty_after: ")
}

// A place is a pointer or a section, and several places are a list. It replaces the default
// completely.
func TestPlaces(t *testing.T) {
	for text, want := range map[string]intake.Places{
		"{}":                         {{Pointer: "/project_id"}},
		"{project: }":                {{Pointer: "/project_id"}},
		"{project: /a}":              {{Pointer: "/a"}},
		"{project: {header: X-A}}":   {{Header: "X-A"}},
		"{project: [/a, {path: b}]}": {{Pointer: "/a"}, {Path: "b"}},
	} {
		decode := func(text string) (s intake.Settings) {
			s = intake.Default()
			_, err := cli.NewDocument("F", []byte(text)).Decode(&s, func(*settings.Faults) {})
			require.NoError(t, err, text)
			return s
		}
		got := decode(text)
		assert.Equal(t, want, got.Project, text)
		written := cli.Encode(&got)
		assert.Equal(t, got, decode(string(written)), "%s", written)
	}
}

// The README's example contains only defaults, besides the upstreams.
func TestTheReadmeShowsDefaults(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(readme), "```yaml\n")
	require.True(t, ok)
	text, _, ok = strings.Cut(text, "```")
	require.True(t, ok)
	got, warnings, err := Parse(cli.NewDocument("README.md", []byte(text)))
	require.NoError(t, err)
	assert.Empty(t, warnings)
	want := Default()
	want.Discovery.Static = []string{"127.0.0.1:9001", "127.0.0.1:9002"}
	assert.Equal(t, want, got)
}

func TestFlagsApplyBeforeTheCheck(t *testing.T) {
	_, _, err := Load("testdata/bad/no-discovery.yaml", Flag{"--upstream", "discovery", true, func(c *Config) { c.Discovery.Static = []string{"127.0.0.1:1"} }})
	assert.NoError(t, err)
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
		c, _, err := Parse(cli.NewDocument("fuzz.yaml", text))
		if err != nil {
			assert.True(t, strings.HasPrefix(err.Error(), "fuzz.yaml"), "%v names no file", err)
			return
		}
		var faults settings.Faults
		c.Check(&faults)
		assert.NoError(t, faults.Err())
		assert.Greater(t, c.Queue.Wait, time.Duration(0))

		written := cli.Encode(&c)
		again, _, err := Parse(cli.NewDocument("written.yaml", written))
		require.NoError(t, err, "%s", written)
		assert.Equal(t, string(written), string(cli.Encode(&again)))
	})
}
