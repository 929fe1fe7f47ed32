package breaker

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.org/pilotfish/internal/health"
)

// The simulated gate agrees with the library's in random histories of calls as internal/health makes them: an open gate is
// called only after the open time, the results of many jobs are returned through one function, and results from before the
// last opening or closing are not returned.
func TestSimulatedAgreesWithTheLibrary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened, refused := 0, 0
		for seed := range uint64(200) {
			o, r := gatesAgree(t, rand.New(rand.NewPCG(seed, 0)))
			opened, refused = opened+o, refused+r
		}
		require.Greater(t, min(opened, refused), 1000, "hardly tried")
	})
}

func gatesAgree(t *testing.T, rng *rand.Rand) (opened, refused int) {
	most := 1 + rng.IntN(6)
	var asked [2][]int // of both gates: the numbers of failures in a row
	trips := func(i int) func(int) bool {
		return func(inARow int) bool {
			asked[i] = append(asked[i], inARow)
			return inARow >= most
		}
	}
	twin, library := &simulated{trips: trips(0)}, New(trips(1))
	var done [2]func(error) // of both gates, since they opened or closed last
	half := false
	for range 200 {
		switch {
		case done[0] == nil || rng.IntN(4) == 0:
			if twin.open {
				time.Sleep(health.MinOpen)
				half = true
			}
			ours, err := twin.allow()
			theirs, refusal := library()
			require.Equal(t, refusal == nil, err == nil)
			if err == nil {
				done = [2]func(error){ours, theirs}
			} else {
				refused++
			}
		default:
			verdict := []error{nil, errors.New("failed")}[rng.IntN(2)]
			done[0](verdict)
			done[1](verdict)
			if half || twin.open {
				done, half = [2]func(error){}, false
			}
		}
		require.Equal(t, asked[1], asked[0])
		if twin.open {
			opened++
		}
	}
	return opened, refused
}
