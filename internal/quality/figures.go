package quality

import (
	"time"

	"example.org/pilotfish/internal/record"
	"example.org/pilotfish/pkg/selection"
)

// The last hour is kept in steps of ten seconds.
const (
	step  = 10 * time.Second
	steps = int64(time.Hour / step)
)

// spans are the windows, in steps: 1, 5 and 60 minutes.
var spans = [...]int64{6, 30, steps}

// Window has the key figures of the jobs that ended in a window of time up to now.
type Window struct {
	// Seconds is how long the window is.
	Seconds float64 `json:"seconds"`
	// Covered is the part of the window that the figures cover. It can be shorter than the
	// window: the present step is not complete, or the sidecar has not run for that long.
	Covered float64 `json:"covered_seconds"`
	// High, Low and All are the figures of the jobs of each priority, and of both.
	High Figures `json:"high"`
	Low  Figures `json:"low"`
	All  Figures `json:"all"`
}

// Figures are the key figures of the jobs of one window and one priority.
type Figures struct {
	// Jobs is how many ended: Complete with a complete response, Failed with a complete response of status 500 or more,
	// Partial with a truncated response, Absent without a response. Jobs that were refused as invalid, or whose
	// submitter disconnected, do not count. Neither do Limited jobs, which were refused because their project was at
	// its limit.
	Jobs     uint64 `json:"jobs"`
	Complete uint64 `json:"complete"`
	Failed   uint64 `json:"failed"`
	Partial  uint64 `json:"partial"`
	Absent   uint64 `json:"absent"`
	Limited  uint64 `json:"limited"`
	// FirstByte is the time to first byte of all jobs with a response, LastByte the time to last byte of complete
	// responses, in seconds.
	FirstByte Quantiles `json:"first_byte_seconds"`
	LastByte  Quantiles `json:"last_byte_seconds"`
	// Data counts the cache hits of the jobs.
	Data CacheHits `json:"data"`
}

// ended counts the jobs of one priority that ended in a step.
type ended struct {
	tally
	firstByte, lastByte histogram
	data                CacheHits
}

func (e *ended) add(j *record.Job, r result) {
	e.tally.add(r, uint8(j.Outcome))
	e.data.add(j)
	if r <= partial {
		e.firstByte.add(j.TTFB.Seconds())
	}
	if r <= failed {
		e.lastByte.add(j.Total.Seconds())
	}
}

func (e *ended) merge(other *ended) {
	e.tally.merge(&other.tally)
	e.data.merge(&other.data)
	e.firstByte.merge(&other.firstByte)
	e.lastByte.merge(&other.lastByte)
}

func (e *ended) figures() Figures {
	_, jobs := e.bad()
	return Figures{
		Jobs: jobs, Complete: e.results[complete], Failed: e.results[failed], Partial: e.results[partial],
		Absent: e.results[absent], Limited: e.results[limited],
		FirstByte: e.firstByte.quantiles(), LastByte: e.lastByte.quantiles(), Data: e.data,
	}
}

// window is the key figures of the last n steps.
func (m *Machine) window(now time.Duration, n int64) Window {
	var by [selection.Priorities]ended
	m.hour.last(now, n, func(s *period) {
		for p := range by {
			by[p].merge(&s.jobs[p])
		}
	})
	length := time.Duration(n) * step
	w := Window{
		Seconds: length.Seconds(), Covered: min(now, length-step+now%step).Seconds(),
		High: by[selection.High].figures(), Low: by[selection.Low].figures(),
	}
	by[selection.High].merge(&by[selection.Low])
	w.All = by[selection.High].figures()
	return w
}
