package selection

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWeighIsFiniteAtTheEnds(t *testing.T) {
	for _, hash := range []uint64{0, 1, math.MaxUint64} {
		score := weigh(hash, 1)
		assert.Positive(t, score)
		assert.False(t, math.IsInf(score, 0), "hash %x", hash)
	}
}
