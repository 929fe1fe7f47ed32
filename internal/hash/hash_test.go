package hash

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The values must never change: sidecars of different versions must agree.
func TestHashesAreFixed(t *testing.T) {
	for text, want := range map[string]uint64{ // FNV-1a
		"":               0xcbf29ce484222325,
		"127.0.0.1:9001": 0xd1ffc5b745d30522,
		"☃":              0x5691f51b88960cac,
	} {
		assert.Equal(t, want, Text(text), "%q is %#x", text, Text(text))
		assert.Equal(t, want, Text([]byte(text)))
	}
	for x, want := range map[uint64]uint64{0: 0, 1: 0xb456bcfc34c2cb2c, 1 << 63: 0x8f780810af31a493} {
		assert.Equal(t, want, Mix(x), "%#x becomes %#x", x, Mix(x))
	}
	assert.Equal(t, Mix(7^0xdaa66d2c7ddf743f), Pair(7, 3))
	assert.NotEqual(t, Pair(7, 3), Pair(3, 7))
}

// The values must never change: sidecars of different versions must agree.
func TestProjectIsFixed(t *testing.T) {
	for project, want := range map[string]uint64{
		"":       0,
		"0":      0xc1e42af088ff1b2c,
		"12345":  0x2a80c0ef561103f3,
		"012345": 0x1fc091a53fc20f98,
		"☃":      0x565ea38a4a9c5305,
	} {
		assert.Equal(t, want, Project(project), "%q is %#x", project, Project(project))
	}
}

// Consecutive projects spread evenly over the values of any byte of their hashes.
func TestProjectSpreads(t *testing.T) {
	const projects, buckets = 25_600, 256
	for shift := 0; shift < 64; shift += 8 {
		var counts [buckets]float64
		for p := range projects {
			counts[byte(Project(strconv.Itoa(p))>>shift)]++
		}
		chi2 := 0.0
		for _, c := range counts {
			chi2 += (c - projects/buckets) * (c - projects/buckets) / (projects / buckets)
		}
		// Chi-squared has mean 255 and deviation sqrt(510) here; five deviations are not a
		// coincidence.
		assert.InDelta(t, buckets-1, chi2, 5*math.Sqrt(2*(buckets-1)), "byte %d", shift/8)
	}
}

// The values must never change. Hashes of blocks depend on every byte, on the length and on the
// blocks before.
func TestBlocks(t *testing.T) {
	assert.Equal(t, uint64(0x9ca066f1a4ab2eea), Block(0, nil))
	assert.Equal(t, uint64(0xa2ffa2a4c6017003), Block(0, []byte("You are a pirate. Answer briefly.")))
	text := make([]byte, 100)
	seen := map[uint64]bool{}
	add := func(h uint64) {
		require.False(t, seen[h])
		seen[h] = true
	}
	for n := range len(text) + 1 {
		add(Block(0, text[:n]))
		add(Block(7, text[:n]))
	}
	for i := range text {
		for bit := range 8 {
			text[i] ^= 1 << bit
			add(Block(0, text))
			text[i] ^= 1 << bit
		}
	}
}
