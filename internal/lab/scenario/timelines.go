package scenario

import (
	"math"

	"example.org/pilotfish/internal/lab/results"
	"example.org/pilotfish/internal/lab/sim"
	"example.org/pilotfish/internal/lab/stats"
)

// points is the largest number of points of a timeline: a figure cannot show more.
const points = 400

// timelines follow the upstreams through one trial.
type timelines struct {
	limit     float64 // an upstream with more stalled joblets counts as overloaded
	imbalance *stats.Imbalance
	// backlog is the mean over the upstreams, queued the sum over the sidecars.
	backlog, queued *stats.Timeline
	// One timeline per upstream: is it overloaded, is it away, its overload level.
	overloaded, away, level []*stats.Timeline
	wasAway, wasRefused     bool // was any upstream ever away, or its level below 1?
	// levels are the samples of the first upstreams, for the closeup.
	levels [][]float32
	last   float64 // when the last sample was taken, in seconds
}

func newTimelines(upstreams int, limit float64) *timelines {
	t := &timelines{
		limit:     limit,
		imbalance: stats.NewImbalance(upstreams, points),
		backlog:   stats.NewTimeline(points),
		queued:    stats.NewTimeline(points),
	}
	for i := range upstreams {
		t.overloaded = append(t.overloaded, stats.NewTimeline(points))
		t.away = append(t.away, stats.NewTimeline(points))
		t.level = append(t.level, stats.NewTimeline(points))
		t.level[i].Set(0, 1)
	}
	t.levels = make([][]float32, min(upstreams, closeupOf))
	return t
}

func (t *timelines) add(s *sim.Sample) {
	at := s.At.Seconds()
	backlogs := make([]float64, len(s.Stalled))
	sum := 0.0
	for i, stalled := range s.Stalled {
		backlogs[i] = float64(stalled)
		sum += backlogs[i]
		t.overloaded[i].Set(at, indicator(backlogs[i] > t.limit))
		t.away[i].Set(at, indicator(!s.Up[i]))
		t.level[i].Set(at, s.Level[i])
		t.wasAway = t.wasAway || !s.Up[i]
		t.wasRefused = t.wasRefused || s.Level[i] < 1
		if i < len(t.levels) {
			t.levels[i] = append(t.levels[i], float32(s.Level[i]))
		}
	}
	t.last = at
	t.imbalance.Set(at, backlogs)
	t.backlog.Set(at, sum/float64(len(backlogs)))
	t.queued.Set(at, float64(s.Queued))
}

func indicator(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// history is what the results say of the timelines.
func (t *timelines) history() results.History {
	h := results.History{
		Stretch:    1,
		End:        t.last,
		Overloaded: series(t.overloaded...),
		Distance:   series(t.imbalance.Distance())[0],
		Backlog:    series(t.backlog)[0],
		Queued:     series(t.queued)[0],
	}
	if p := t.backlog.Points(); len(p) > 1 {
		h.Stretch = p[1].At - p[0].At
	}
	if t.wasAway {
		h.Away = series(t.away...)
	}
	if t.wasRefused {
		h.Level = series(t.level...)
		h.Closeup = closeup(t.last/float64(len(t.levels[0])), t.levels)
	}
	return h
}

// series returns the values of timelines, rounded to four decimal places: a
// figure cannot show more.
func series(timelines ...*stats.Timeline) [][]float64 {
	all := make([][]float64, len(timelines))
	for i, t := range timelines {
		all[i] = []float64{}
		for _, p := range t.Points() {
			all[i] = append(all[i], math.Round(p.Value*1e4)/1e4)
		}
	}
	return all
}
