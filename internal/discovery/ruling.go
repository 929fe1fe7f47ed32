package discovery

import "time"

// Ruling is what the guard makes of an answer.
type Ruling struct {
	// Changed says that the set in force is another than before.
	Changed bool
	// Doubt is why what the answer lacks was kept; None when it was believed in full.
	Doubt Doubt
	// Confirm is how much longer answers must agree before they are believed.
	Confirm time.Duration
}

// Doubt is a reason not to believe an answer yet.
type Doubt uint8

// The doubts.
const (
	None      Doubt = iota
	Emptiness       // it has no upstream
	Drop            // it lacks more than half of the good set, or some of it when the guard is wary
)

// String returns the doubt's word in logs.
func (d Doubt) String() string { return [...]string{"none", "emptiness", "drop"}[d] }
