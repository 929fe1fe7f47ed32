package stats

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The variance is that of the naive formula, also of values that were taken in apart.
func TestMoments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var one Moments
	var parts [3]Moments
	sum, squares := 0.0, 0.0
	for i := range 1000 {
		v := 100 + rng.ExpFloat64()*float64(1+i%7)
		one.Add(v)
		parts[i%2].Add(v)
		sum, squares = sum+v, squares+v*v
	}
	want := squares/1000 - sum/1000*sum/1000
	assert.InEpsilon(t, want, one.Variance(), 1e-9)
	for _, part := range parts[1:] {
		parts[0].Merge(part)
	}
	assert.InEpsilon(t, want, parts[0].Variance(), 1e-9)
	assert.Zero(t, parts[2].Variance())
}
