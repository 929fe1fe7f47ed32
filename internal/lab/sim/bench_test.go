package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/pkg/selection"
)

// BenchmarkRun plays jobs with projects through the sidecars, three quarters of
// what the fleet can do.
func BenchmarkRun(b *testing.B) {
	for name, sidecars := range map[string]int{"one scheduler": 1, "40 sidecars": 40} {
		b.Run(name, func(b *testing.B) {
			policy, err := selection.New("expected")
			require.NoError(b, err)
			s := setup(b, "random", "none")
			s.Policy, s.Count, s.Wait = policy, sidecars, 4*time.Minute
			b.ReportAllocs()
			_, err = Run(b.Context(), Config{
				Source:  &spread{Source: &poisson{rng: rand.New(rand.NewPCG(1, 1)), rate: 84, work: 2, n: b.N}},
				Fleet:   Fleet{Servers: 14, Cores: 16},
				Sidecar: s,
				Observe: func(*Result) {},
			})
			require.NoError(b, err)
		})
	}
}
