package settings

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
