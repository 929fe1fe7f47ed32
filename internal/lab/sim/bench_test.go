package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkRun plays jobs with projects through the sidecars, three quarters of
// what the fleet can do.
func BenchmarkRun(b *testing.B) {
	for name, sidecars := range map[string]int{"one scheduler": 1, "40 sidecars": 40} {
		b.Run(name, func(b *testing.B) {
			c := setup(b, "expected", "none", 14, 16)
			c.Sidecars.Count, c.Sidecars.Wait = sidecars, 4*time.Minute
			b.ReportAllocs()
			c.Source = &spread{Source: &poisson{rng: rand.New(rand.NewPCG(1, 1)), rate: 84, work: 2, n: b.N}}
			c.Observe = func(*Result) {}
			_, err := Run(b.Context(), c)
			require.NoError(b, err)
		})
	}
}
