package overload

// None finds no upstream overloaded, whatever it reports.
//
// Source: the thesis's baseline, 9.1.1. Use it to compare with, or where the
// selection policy alone keeps jobs off crowded upstreams.
type None struct{}

// Observe implements Detector.
func (None) Observe(Sample) Level { return 1 }
