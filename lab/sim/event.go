package sim

import (
	"time"

	"example.org/pilotfish/lab/agenda"
)

// The ranks of events of one instant: what frees capacity comes before what needs it.
const (
	rankFinish = iota
	rankFleet
	rankReport
	rankTimeout
	rankArrival
)

// events are what is to happen, since the start of the trace.
type events = agenda.Agenda[time.Duration, func()]
