package stats

import "fmt"

// Quantity is what a table tells of jobs.
type Quantity string

const (
	// Duration is from the job's arrival to its end, in seconds.
	Duration Quantity = "duration_s"
	// Wait is from the job's arrival to the start of its execution, in seconds.
	Wait Quantity = "wait_s"
	// Slowdown is the share of a job's time that it waited: see SlowdownOf.
	Slowdown Quantity = "slowdown"
	// Stretch is how much longer a job took than with no load: see StretchOf.
	Stretch Quantity = "stretch"
)

// Quantities returns all, in the order of tables.
func Quantities() []Quantity { return []Quantity{Duration, Wait, Slowdown, Stretch} }

// SlowdownOf is W/(W+E), the thesis's definition (5.1): 0 for a job that did
// not wait, towards 1 for one that did nothing else.
func SlowdownOf(wait, execution float64) float64 {
	if wait < 0 || execution < 0 {
		panic(fmt.Sprintf("stats: a wait of %v s and an execution of %v s", wait, execution))
	}
	if wait == 0 {
		return 0
	}
	return wait / (wait + execution)
}

// StretchOf is the response time over the response time at no load (Zhu,
// Smith and Yang). It is 1 when neither took time; ok is false when only the
// response did, for then it has no value.
func StretchOf(response, unloaded float64) (stretch float64, ok bool) {
	switch {
	case response < 0 || unloaded < 0:
		panic(fmt.Sprintf("stats: a response time of %v s, %v s at no load", response, unloaded))
	case unloaded > 0:
		return response / unloaded, true
	}
	return 1, response == 0
}
