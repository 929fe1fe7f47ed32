package ruleserver

import (
	"fmt"
	"strconv"
	"time"

	"example.org/pilotfish/internal/ruleserver/executor"
)

// HintHeader is the response header that carries a load hint.
const HintHeader = "X-Load"

// hint tells a submitter what the server's metrics would, and what its own job
// met. The job itself still counts as running.
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

func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Round(time.Microsecond).Seconds(), 'f', -1, 64)
}
