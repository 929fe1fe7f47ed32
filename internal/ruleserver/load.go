package ruleserver

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
)

// hintHeader is the response header of the load hint.
const hintHeader = "X-Load"

// load is the load that the server reports.
func (s *Server) load() executor.Load {
	load := s.executor.Load()
	if s.adjustLoad != nil {
		s.adjustLoad(&load)
	}
	return load
}

func (s *Server) setHint(w http.ResponseWriter, job executor.Facts) {
	w.Header().Set(hintHeader, hint(time.Now(), s.load(), job))
}

// hint tells the submitter what the metrics would tell it now, and what happened to
// its own job. The job itself still counts as running.
func hint(now time.Time, load executor.Load, job executor.Facts) string {
	text := fmt.Sprintf("at=%.3f, running=%d, stalled=%d, stalled_high=%d, cores=%d",
		float64(now.UnixMilli())/1000,
		load.Running[executor.High]+load.Running[executor.Low],
		load.Stalled[executor.High]+load.Stalled[executor.Low],
		load.Stalled[executor.High], load.Cores)
	if job.Started {
		cached := 0
		if job.Cached {
			cached = 1
		}
		text += fmt.Sprintf(", cached=%d, waited=%s", cached, seconds(job.Wait))
	}
	if job.Fetch > 0 {
		text += ", fetch=" + seconds(job.Fetch)
	}
	return text
}

// seconds writes a duration as a number of seconds, to the microsecond.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Round(time.Microsecond).Seconds(), 'f', -1, 64)
}
