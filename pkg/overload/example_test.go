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

// At a level of 0.75 an upstream takes all high jobs, and half of the projects'
// low ones: the same half in every sidecar.
func ExampleLevel() {
	level := overload.Level(0.75)
	for _, priority := range []selection.Priority{selection.High, selection.Low} {
		admitted := 0
		for project := uint64(1); project <= 1000; project++ {
			if level.Admits(selection.Job{Project: project, Priority: priority, Hour: 490000}) {
				admitted++
			}
		}
		fmt.Printf("%v: %d of 1000 projects\n", priority, admitted)
	}
	// Output:
	// high: 1000 of 1000 projects
	// low: 494 of 1000 projects
}
