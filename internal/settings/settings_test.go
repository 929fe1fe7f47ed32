package settings

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFaultsAreNamedBySection(t *testing.T) {
	var f Faults
	assert.NoError(t, f.Err())
	f.Positive("wait", time.Second)
	f.Positive("wait", 0)
	runs := f.In("runs")
	runs.In("[1]").OneOf("policy", "fair", []string{"a", "b"})
	runs.Add("", "there is no run")
	assert.Equal(t, []Fault{
		{Key: "wait", Text: "0s must be positive"},
		{Key: "runs[1].policy", Text: `"fair" is not one of a, b`},
		{Key: "runs", Text: "there is no run"},
	}, f.All())
	assert.EqualError(t, f.Err(), "wait: 0s must be positive\nruns[1].policy: \"fair\" is not one of a, b\nruns: there is no run")
}

func TestAddressesAndPaths(t *testing.T) {
	for _, c := range []struct {
		check func(f *Faults, text string)
		good  []string
		bad   []string
	}{
		{func(f *Faults, s string) { f.Listen("k", s) }, []string{":0", "127.0.0.1:8080", "unix:/run/jobs"}, []string{"", "host", "a:b", "a:65536", "unix:jobs", "unix:/" + strings.Repeat("x", 107)}},
		{func(f *Faults, s string) { f.URL("k", s) }, []string{"http://a", "https://a:1/b"}, []string{"a:1", "ftp://a", "http://", "http://user:secret@a"}},
	} {
		for i, text := range append(c.good, c.bad...) {
			var f Faults
			c.check(&f, text)
			assert.Equal(t, i >= len(c.good), f.Err() != nil, "%q", text)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	words := []string{"expected", "random", "dynamic", "p2c-ewma", "info"}
	for word, want := range map[string]string{
		"expcted": "expected", "exepcted": "expected", "Random": "random", "randon": "random", "p2c_ewma": "p2c-ewma",
		"rand": "random", "dynamics": "dynamic", "ran": "random", "ra": "", "inof": "info", "best": "", "": "", "unexpected": "expected", strings.Repeat("random", 20): "",
	} {
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		assert.Equal(t, want, DidYouMean(word, words), word)
	}
}

func TestNumbersAndTheirBounds(t *testing.T) {
	for want, check := range map[string]func(f *Faults){
		"": func(f *Faults) {
			f.AtLeast("k", 3, 3)
			f.Within("k", 1, 1, 2)
			f.Within("k", 2, 1, 2)
			f.Between("k", 0, 0, 1)
			f.Between("k", 1, 0, 1)
		},
		"k: 2 must be at least 3":       func(f *Faults) { f.AtLeast("k", 2, 3) },
		"k: 0 is not between 1 and 2":   func(f *Faults) { f.Within("k", 0, 1, 2) },
		"k: 3 is not between 1 and 2":   func(f *Faults) { f.Within("k", 3, 1, 2) },
		"k: -1 is not between 0 and 1":  func(f *Faults) { f.Between("k", -1, 0, 1) },
		"k: 2 is not between 0 and 1":   func(f *Faults) { f.Between("k", 2, 0, 1) },
		"k: NaN is not between 0 and 1": func(f *Faults) { f.Between("k", math.NaN(), 0, 1) },
	} {
		var f Faults
		if check(&f); want == "" {
			assert.NoError(t, f.Err())
		} else {
			assert.EqualError(t, f.Err(), want)
		}
	}
}

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.1:9001":           "10.0.0.1:9001",
		"Rules-1.Example.COM:80":  "rules-1.example.com:80",
		"[2001:DB8:0:0::1]:9001":  "[2001:db8::1]:9001",
		"[::ffff:10.0.0.1]:9001":  "10.0.0.1:9001",
		"a_b:65535":               "a_b:65535",
		"unix:/run//App-1/a.sock": "unix:/run/App-1/a.sock",
		"a:0080":                  "a:80",
	} {
		got, err := Address(in)
		require.NoError(t, err, in)
		assert.Equal(t, want, got)
		again, err := Address(got)
		require.NoError(t, err)
		assert.Equal(t, got, again)
	}
}

func TestAddressRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                              `"" is not host:port`,
		"a":                             `"a" is not host:port; the port is missing: write a:PORT`,
		"::1:80":                        `"::1:80" is not host:port; an IPv6 address needs brackets, as in [fd00::3]:9001`,
		"a:http":                        `"a:http" is not host:port: the port is not between 1 and 65535`,
		"a:1/api":                       `"a:1/api" is not host:port; an address has no path: write a:1`,
		"a:1,":                          `"a:1," is not host:port; commas do not separate addresses`,
		"a:0":                           `"a:0" is not host:port: the port is not between 1 and 65535`,
		"a:65536":                       `"a:65536" is not host:port: the port is not between 1 and 65535`,
		":80":                           `host "" is not a name or an IP address`,
		"a b:80":                        `host "a b" is not a name or an IP address`,
		"a\n:80":                        `host "a\n" is not a name or an IP address`,
		"user@a:80":                     `host "user@a" is not a name or an IP address`,
		"unix:run/app.sock":             `"unix:run/app.sock" is not unix: followed by the absolute path of a socket, with only letters, digits and /.-_@+=`,
		"unix:/run/a b":                 `"unix:/run/a b" is not unix: followed by the absolute path of a socket, with only letters, digits and /.-_@+=`,
		"http://a:80":                   `"http://a:80" is a URL; write a:80`,
		"[fe80::1%eth0]:1":              `host "fe80::1%eth0" has an IPv6 zone, which is valid only on its own machine`,
		strings.Repeat("a", 254) + ":1": `host "` + strings.Repeat("a", 77) + `..." is not a name or an IP address`,
	} {
		_, err := Address(in)
		assert.EqualError(t, err, want)
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "17": 17, "3KiB": 3 << 10, "64MiB": 64 << 20, "2 GiB": 2 << 30, "9B": 9} {
		var got, again Size
		require.NoError(t, got.UnmarshalText([]byte(text)), text)
		assert.Equal(t, want, got, text)
		require.NoError(t, again.UnmarshalText([]byte(got.String())))
		assert.Equal(t, got, again)
	}
	for want, size := range map[string]Size{"0": 0, "17": 17, "3KiB": 3 << 10, "1025": 1<<10 + 1, "1MiB": 1 << 20, "2GiB": 2 << 30} {
		assert.Equal(t, want, size.String())
	}
	for _, text := range []string{"", "-1", "64MB", "1.5MiB", "KiB", "9999999999GiB"} {
		assert.Error(t, new(Size).UnmarshalText([]byte(text)), text)
	}
}

func TestCut(t *testing.T) {
	for in, want := range map[string]string{
		"":                                     "",
		"ten bytes.":                           "ten bytes.",
		"eleven byte.":                         "eleven ...",
		"\u00fc\u00fc\u00fc\u00fc\u00fc\u00fc": "\u00fc\u00fc\u00fc...",
		strings.Repeat("x", 900_000):           "xxxxxxx...",
	} {
		assert.Equal(t, want, Cut(in, 10))
	}
}
