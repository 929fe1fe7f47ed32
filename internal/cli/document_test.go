package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/settings"
)

// file is the type of the documents in these tests.
type file struct {
	Name   string        `yaml:"name"`
	Wait   time.Duration `yaml:"wait"`
	Size   settings.Size `yaml:"size"`
	Share  float64       `yaml:"share"`
	Seed   uint64        `yaml:"seed"`
	Hosts  []string      `yaml:"hosts"`
	Consul *consul       `yaml:"consul"`
	Runs   []run         `yaml:"runs"`
	common `yaml:",inline"`
	Hidden int `yaml:"-"`
}

type common struct {
	Attempts int  `yaml:"attempts"`
	On       bool `yaml:"on"`
}

type consul struct {
	Service string        `yaml:"service"`
	Wait    time.Duration `yaml:"keep_last"`
}

func (c *consul) UnmarshalYAML(decode func(any) error) error {
	type section consul
	*c = consul{Wait: 30 * time.Second}
	return decode((*section)(c))
}

type run struct {
	Policy string `yaml:"policy"`
}

func (f *file) check(faults *settings.Faults) {
	faults.Positive("wait", f.Wait)
	if f.Attempts > 10 {
		faults.Warn("attempts", "%d is many", f.Attempts)
	}
	for i, r := range f.Runs {
		faults.In("runs").In("["+string(rune('0'+i))+"]").OneOf("policy", r.Policy, []string{"random", "expected"})
	}
}

func decodeText(text string) (file, []*Error, error) {
	f := file{Name: "none", Wait: time.Second, Hosts: []string{"a", "b"}}
	warnings, err := NewDocument("F", []byte(text)).Decode(&f, f.check)
	return f, warnings, err
}

func TestDecode(t *testing.T) {
	defaults := file{Name: "none", Wait: time.Second, Hosts: []string{"a", "b"}}
	set := func(change func(*file)) file {
		f := defaults
		change(&f)
		return f
	}
	for text, want := range map[string]file{
		"":                           defaults,
		"# nothing\n":                defaults,
		"---\n# nothing\n":           defaults,
		"wait:\nhosts:\nconsul:\n":   defaults, // a key without a value keeps the default
		"\ufeffname: bom\n":          set(func(f *file) { f.Name = "bom" }),
		"name: crlf\r\non: true\r\n": set(func(f *file) { f.Name, f.On = "crlf", true }),
		"%YAML 1.2\n---\nseed: 2\n":  set(func(f *file) { f.Seed = 2 }),
		"\ufeff# made by\r\n%YAML 1.2 # x\r\n---\r\nseed: 2\r\n...\r\n": set(func(f *file) { f.Seed = 2 }),
		"name: 5":                    set(func(f *file) { f.Name = "5" }),
		"wait: 0x\nwait2: 1":         {},
		"wait: 1m30s":                set(func(f *file) { f.Wait = 90 * time.Second }),
		"size: 3KiB\nshare: -.5":     set(func(f *file) { f.Size, f.Share = 3072, -.5 }),
		"seed: 18446744073709551615": set(func(f *file) { f.Seed = 1<<64 - 1 }),
		"attempts: -3\non: True":     set(func(f *file) { f.Attempts, f.On = -3, true }),
		"hosts: []":                  set(func(f *file) { f.Hosts = []string{} }),
		"hosts: [127.0.0.1:9, ::1]":  set(func(f *file) { f.Hosts = []string{"127.0.0.1:9", "::1"} }),
		"consul: {}":                 set(func(f *file) { f.Consul = &consul{Wait: 30 * time.Second} }),
		"consul: {service: x}":       set(func(f *file) { f.Consul = &consul{"x", 30 * time.Second} }),
		"runs: [{policy: random}, {policy: expected}]": set(func(f *file) { f.Runs = []run{{"random"}, {"expected"}} }),
		"runs: [&r {policy: random}, *r]":              set(func(f *file) { f.Runs = []run{{"random"}, {"random"}} }),
	} {
		got, warnings, err := decodeText(text)
		if want.Name == "" {
			assert.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		assert.Empty(t, warnings, text)
		assert.Equal(t, want, got, text)
	}
}

// Faults of types and keys that the configuration does not have. internal/config tests the others.
func TestFaultsOfADocument(t *testing.T) {
	for text, want := range map[string]string{
		"wait: 0.5":                    `F:1:7: wait: expected a duration with its unit, such as 500ms, 5s or 2m, found "0.5"`,
		`seed: "5"`:                    `F:1:7: seed: expected a whole number from 0 on, found "5": remove the quotes, which make it text`,
		`share: "a half"`:              `F:1:8: share: expected a number, found "a half"`,
		"seed: -1":                     `F:1:7: seed: expected a whole number from 0 on, found "-1"`,
		"consul: x":                    `F:1:9: consul: expected a section with the keys service, keep_last, found "x"`,
		"- a":                          "F:1:1: expected a section with the keys name, wait, size, share, seed, hosts, consul, runs, attempts, on, found a list",
		"-: 1":                         "F:1:1: -: unknown key; those known here are name, wait, size, share, seed, hosts, consul, runs, attempts, on",
		"Hidden: 1":                    "F:1:1: Hidden: unknown key; those known here are name, wait, size, share, seed, hosts, consul, runs, attempts, on",
		"runs:\n- policy: expcted\n":   `F:2:11: runs[0].policy: "expcted" is not one of random, expected; did you mean expected?`,
		"runs: [{}]":                   `F:1:8: runs[0].policy: "" is not one of random, expected`,
		"runs: &x [*x]":                "F:1:7: runs: expected a section with the keys policy, found a list",
		"on: 1\nwait: 0s\nattempts: x": "F:1:5: on: expected true or false, found \"1\"\nF:2:7: wait: 0s must be positive\nF:3:11: attempts: expected a whole number, found \"x\"",
	} {
		_, _, err := decodeText(text)
		require.Error(t, err, text)
		assert.Equal(t, want, err.Error(), text)
	}
}

// A value of a wrong type keeps its default, and check reports no second fault about it. The
// time for a file does not grow with the number of its faults, so a reload ends.
func TestFaultsAreBounded(t *testing.T) {
	var many strings.Builder
	for i := range maxKeys + 1 {
		fmt.Fprintf(&many, "  k%d: 1\n", i)
	}
	_, _, err := decodeText("seed: 1\nconsul:\n" + many.String())
	assert.EqualError(t, err, "F:2:1: consul: a section has at most 1000 keys, not 1001")
	_, _, err = decodeText("hosts: [" + strings.Repeat("{},", 10*maxMisfits) + "]")
	assert.Equal(t, maxMisfits, strings.Count(err.Error(), "expected text, found a section"))
}

func TestWrongTypeIsReportedOnce(t *testing.T) {
	var f file // check refuses 0, the default of wait
	_, err := NewDocument("F", []byte("wait: soon")).Decode(&f, f.check)
	assert.EqualError(t, err, `F:1:7: wait: expected a duration with its unit, such as 500ms, 5s or 2m, found "soon"`)
}

func TestWarningsAreNoFaults(t *testing.T) {
	_, warnings, err := decodeText("attempts: 11")
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	assert.EqualError(t, warnings[0], "F:1:11: warning: attempts: 11 is many")
}

func TestFaultsNameTheirFlags(t *testing.T) {
	d := NewDocument("F", []byte("attempts: 1"))
	d.Flags = map[string]string{"wait": "--wait"}
	var f file
	_, err := d.Decode(&f, f.check)
	assert.EqualError(t, err, "--wait: 0s must be positive")

	none := Document{Flags: d.Flags} // a command line without a file
	_, err = none.Decode(&f, f.check)
	assert.EqualError(t, err, "--wait: 0s must be positive")
}

func TestDecodeKey(t *testing.T) {
	d := NewDocument("F", []byte("runs:\n- policy: a\n- polcy: b\n"))
	r := run{Policy: "c"}
	d.DecodeKey("runs[0]", &r)
	assert.Equal(t, run{"a"}, r)
	d.DecodeKey("runs[2]", &r)
	assert.Equal(t, run{"a"}, r, "what is not there changes nothing")
}

// Aliases can make a small file large.
func TestAliasesAreBounded(t *testing.T) {
	var f struct {
		A [][][]string `yaml:"a"`
	}
	few := strings.TrimSuffix(strings.Repeat("x,", 1000), ",")
	text := "a: [[&x [" + few + "], " + strings.TrimSuffix(strings.Repeat("*x,", 1000), ",") + "], &y [*x, *x, *x], *y, *y]\n"
	text = strings.Replace(text, "a: [[", "a: [&z [", 1)
	text = strings.Replace(text, "*y, *y]", "*z, *z, *z]", 1)
	_, err := NewDocument("F", []byte(text)).Decode(&f, func(*settings.Faults) {})
	require.ErrorContains(t, err, "document contains excessive aliasing")
	assert.NotContains(t, err.Error(), "\n", "it is reported once")
}

func TestMissingAndHugeFiles(t *testing.T) {
	_, err := Open("testdata/nowhere.yaml")
	require.ErrorContains(t, err, "testdata/nowhere.yaml")
	huge := filepath.Join(t.TempDir(), "huge.yaml")
	require.NoError(t, os.WriteFile(huge, []byte(strings.Repeat("#\n", 1<<20)), 0o600))
	_, err = Open(huge)
	require.ErrorContains(t, err, "longer than 1048576 bytes")
}

func TestEncodeIsReadBack(t *testing.T) {
	f := file{
		Name: "5", Wait: 2 * time.Minute, Size: 64 << 20, Share: .2, Seed: 7, Hosts: []string{"127.0.0.1:9", "*", "true"},
		Consul: &consul{"x: y", time.Hour + 90*time.Second}, Runs: []run{{"random"}, {"expected"}}, common: common{3, true},
	}
	text := Encode(&f)
	assert.Equal(t, `name: '5'
wait: 2m0s
size: 64MiB
share: 0.2
seed: 7
hosts: ['127.0.0.1:9', '*', 'true']
consul:
  service: 'x: y'
  keep_last: 1h1m30s
runs: [{policy: random}, {policy: expected}]
attempts: 3
'on': true
`, string(text))
	again, _, err := decodeText(string(text))
	require.NoError(t, err)
	assert.Equal(t, f, again)
}

func TestEncodeHidesPasswords(t *testing.T) {
	text := Encode(struct {
		URL string `yaml:"url"`
	}{"https://scraper:topsecret@prometheus.internal/rules"})
	assert.Equal(t, "url: https://scraper:xxxxx@prometheus.internal/rules\n", string(text))
}
