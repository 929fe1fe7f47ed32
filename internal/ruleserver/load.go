package ruleserver

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
)

// hintHeader is the response header of the load hint.
const hintHeader = "X-Load"

// figures are the load that the server reports: the executor's, unless a fault makes
// the server lie.
type figures struct {
	cores, busy      float64
	running, stalled [2]float64 // by executor.Priority
	totals           executor.Totals
}

func (f figures) allRunning() float64 { return f.running[executor.High] + f.running[executor.Low] }
func (f figures) allStalled() float64 { return f.stalled[executor.High] + f.stalled[executor.Low] }

func (s *Server) figures() figures {
	load := s.executor.Load()
	if s.adjustLoad != nil {
		s.adjustLoad(&load)
	}
	return s.faults.distort(figuresOf(load))
}

func figuresOf(load executor.Load) figures {
	f := figures{cores: float64(load.Cores), busy: float64(load.Busy), totals: load.Totals}
	for _, p := range executor.Priorities() {
		f.running[p], f.stalled[p] = float64(load.Running[p]), float64(load.Stalled[p])
	}
	return f
}

// setLoad adds what the server says of its load to the header of a response: the
// load hint, and an ORCA report if that is wanted there.
func (s *Server) setLoad(header http.Header, report orca, job executor.Facts) {
	if s.faults.is(faultSilent) {
		return
	}
	load := s.figures()
	header.Set(hintHeader, hint(time.Now(), load, job))
	if !report.trailer {
		report.set(header, load, job)
	}
}

// hint tells the submitter what the metrics would tell it now, and what happened to
// its own job. The job itself still counts as running.
func hint(now time.Time, load figures, job executor.Facts) string {
	text := fmt.Sprintf("at=%.3f", float64(now.UnixMilli())/1000)
	for _, one := range namedFigures(load, job) {
		text += ", " + one.name + "=" + number(one.value)
	}
	return text
}

// namedFigure is a figure of the load hint and of an ORCA report, with its name there.
type namedFigure struct {
	name  string
	value float64
}

func namedFigures(load figures, job executor.Facts) []namedFigure {
	named := []namedFigure{
		{"running", load.allRunning()},
		{"stalled", load.allStalled()},
		{"stalled_high", load.stalled[executor.High]},
		{"cores", load.cores},
	}
	if job.Started {
		named = append(named, namedFigure{"cached", oneIf(job.Cached)}, namedFigure{"waited", seconds(job.Wait)})
	}
	if job.Fetch > 0 {
		named = append(named, namedFigure{"fetch", seconds(job.Fetch)})
	}
	return named
}

// number writes a figure without an exponent, unless it is absurd.
func number(x float64) string {
	if math.Abs(x) < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// seconds is a duration in seconds, to the microsecond.
func seconds(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
