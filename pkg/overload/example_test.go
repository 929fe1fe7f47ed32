package overload_test

import (
	"fmt"
	"math"

	"example.org/pilotfish/pkg/overload"
	"example.org/pilotfish/pkg/selection"
)

// A threshold of 100 stalled joblets keeps jobs off an upstream until fewer than
// 80 are left.
func ExampleNew() {
	build, err := overload.New("threshold", 100)
	if err != nil {
		panic(err)
	}
	detector := build() // one for each upstream
	for _, stalled := range []float64{90, 101, 90, 79} {
		level := detector.Observe(overload.Sample{Stalled: stalled, Wait: math.NaN(), Response: math.NaN()})
		fmt.Println(stalled, "stalled joblets, takes jobs:", level.Admits(selection.Job{Project: 12345}))
	}
	// Output:
	// 90 stalled joblets, takes jobs: true
	// 101 stalled joblets, takes jobs: false
	// 90 stalled joblets, takes jobs: false
	// 79 stalled joblets, takes jobs: true
}
