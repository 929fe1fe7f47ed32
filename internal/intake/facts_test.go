package intake

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The values are fixed for good: sidecars of different versions must agree.
func TestKeyIsFixed(t *testing.T) {
	for project, want := range map[string]uint64{
		"":       0,
		"0":      0xc1e42af088ff1b2c,
		"12345":  0x2a80c0ef561103f3,
		"012345": 0x1fc091a53fc20f98,
		"☃":      0x565ea38a4a9c5305,
	} {
		assert.Equal(t, want, Key(project), "%q is %#x", project, Key(project))
	}
}

// Consecutive projects spread evenly over the values of any byte of their keys.
func TestKeySpreads(t *testing.T) {
	const projects, buckets = 25_600, 256
	for shift := 0; shift < 64; shift += 8 {
		var counts [buckets]float64
		for p := range projects {
			counts[byte(Key(strconv.Itoa(p))>>shift)]++
		}
		chi2 := 0.0
		for _, c := range counts {
			chi2 += (c - projects/buckets) * (c - projects/buckets) / (projects / buckets)
		}
		// Chi-squared has mean 255 and deviation sqrt(510) here; five deviations are no accident.
		assert.InDelta(t, buckets-1, chi2, 5*math.Sqrt(2*(buckets-1)), "byte %d", shift/8)
	}
}

func TestKeysDiffer(t *testing.T) {
	seen := map[uint64]int{}
	for p := range 200_000 {
		k := Key(strconv.Itoa(p))
		require.NotZero(t, k)
		other, twice := seen[k]
		require.False(t, twice, "projects %d and %d", p, other)
		seen[k] = p
	}
}

func TestText(t *testing.T) {
	var texts []string
	for n := range 300 {
		texts = append(texts, strings.Repeat("x", n))
	}
	texts = append(texts, "y", "x\x00", "\x00", "☃")
	for i, a := range texts {
		assert.Equal(t, a, NewText(a).String())
		for j, b := range texts {
			if (NewText(a) == NewText(b)) != (i == j) {
				t.Errorf("%q and %q", a, b)
			}
		}
	}
	assert.Equal(t, Text{}, NewText(""))
}
