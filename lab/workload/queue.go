package workload

import (
	"math"

	"example.org/pilotfish/lab/agenda"
	"example.org/pilotfish/lab/trace"
)

// never is later than any instant: a process that is over is due then.
const never = math.MaxFloat64

// process is something that happens repeatedly: a schedule, the channels of one
// firing, a person's session.
type process interface {
	// run does what is due at an instant. It reports whether it filled in a job to
	// emit, and when it is due again.
	run(g *Generator, at float64, job *trace.Job) (emits bool, again float64)
}

// queue is the processes, by when they are due.
type queue = agenda.Agenda[float64, process]
