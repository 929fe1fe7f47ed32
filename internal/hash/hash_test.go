package hash

import (
	"hash/fnv"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The values are fixed for good: sidecars of different versions must agree.
func TestHashesAreFixed(t *testing.T) {
	for text, want := range map[string]uint64{
		"":               0xcbf29ce484222325,
		"127.0.0.1:9001": 0xd1ffc5b745d30522,
		"☃":              0x5691f51b88960cac,
	} {
		assert.Equal(t, want, Text(text), "%q is %#x", text, Text(text))
		assert.Equal(t, want, Text([]byte(text)))
		h := fnv.New64a()
		h.Write([]byte(text))
		assert.Equal(t, h.Sum64(), Text(text), text)
	}
	for x, want := range map[uint64]uint64{0: 0, 1: 0xb456bcfc34c2cb2c, 1 << 63: 0x8f780810af31a493} {
		assert.Equal(t, want, Mix(x), "%#x becomes %#x", x, Mix(x))
	}
	assert.Equal(t, Mix(7^0xdaa66d2c7ddf743f), Pair(7, 3))
	assert.NotEqual(t, Pair(7, 3), Pair(3, 7))
}
