package quality

import (
	"math"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"

	"example.org/pilotfish/internal/intake"
	"example.org/pilotfish/internal/pool"
)

// accuracy is the relative error of a quantile.
const accuracy = 0.02

// The values that a sketch tells apart; others count as the nearest of these. The
// number of a sketch's buckets is bounded by them: about 520, in 4 kB.
const (
	leastValue = 1e-3
	mostValue  = 1e6
)

// Figures are the key figures of the jobs of one window and one priority.
type Figures struct {
	// Jobs is how many ended, without those that were refused as invalid or whose
	// submitter left. Each had its response in whole, in part or not at all: Complete,
	// Partial or Absent.
	Jobs     uint64 `json:"jobs"`
	Complete uint64 `json:"complete"`
	Partial  uint64 `json:"partial"`
	Absent   uint64 `json:"absent"`
	// Failed is how many of the complete were responses with a status of 500 or more.
	Failed uint64 `json:"failed"`
	// Lost is how the partial and the absent ended, by outcome.
	Lost map[string]uint64 `json:"lost,omitempty"`
	// FirstByte is of all jobs with a response, LastByte of the complete, in seconds.
	FirstByte Quantiles `json:"first_byte_seconds"`
	LastByte  Quantiles `json:"last_byte_seconds"`
	// Stretch is the time of a complete job over its time with no load. Slowdown is
	// the mean share of a job's time that it waited. Both are of the jobs whose
	// upstream tells waits.
	Stretch  Quantiles `json:"stretch"`
	Slowdown float64   `json:"slowdown_mean"`
}

// Quantiles says how values are spread; all are 0 without values.
type Quantiles struct {
	// Count is how many values there were, and Mean their mean. P50, P90 and P99 are
	// those that 50, 90 and 99 % of the values do not exceed, and Max is the largest.
	Count uint64  `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// spread is a sketch that takes no memory before its first value.
type spread struct {
	sketch *ddsketch.DDSketchWithExactSummaryStatistics
}

func newSketch() *ddsketch.DDSketchWithExactSummaryStatistics {
	m, err := mapping.NewLogarithmicMapping(accuracy)
	if err != nil {
		panic("BUG: quality: " + err.Error()) // the accuracy is a constant
	}
	return ddsketch.NewDDSketchWithExactSummaryStatistics(m, store.BufferedPaginatedStoreConstructor)
}

func (s *spread) add(value float64) {
	if s.sketch == nil {
		s.sketch = newSketch()
	}
	_ = s.sketch.Add(min(max(value, leastValue), mostValue)) // it refuses only what is out of range
}

func (s *spread) merge(other *spread) {
	if other.sketch == nil {
		return
	}
	if s.sketch == nil {
		s.sketch = newSketch()
	}
	_ = s.sketch.MergeWith(other.sketch) // all have the same mapping
}

func (s *spread) quantiles() Quantiles {
	if s.sketch == nil || s.sketch.IsEmpty() {
		return Quantiles{}
	}
	at, _ := s.sketch.GetValuesAtQuantiles([]float64{0.5, 0.9, 0.99}) // fails only when empty
	most, _ := s.sketch.GetMaxValue()
	count := s.sketch.GetCount()
	return Quantiles{
		Count: uint64(count), Mean: s.sketch.GetSum() / count,
		P50: at[0], P90: at[1], P99: at[2], Max: most,
	}
}

// slot is what ended in one stretch of time.
type slot struct {
	number  int64 // of the stretch, since the machine's start
	counted [intake.Completenesses]uint64
	failed  uint64
	lost    [intake.Outcomes]uint64

	firstByte, lastByte, stretch spread
	slowdown                     float64 // the sum, over the values of stretch
}

func (s *slot) add(j *Job) {
	s.counted[j.Completeness]++
	if j.Completeness != intake.Complete {
		s.lost[j.Outcome]++
	}
	if j.Completeness == intake.Absent {
		return
	}
	s.firstByte.add(j.FirstByte.Seconds())
	if j.Completeness != intake.Complete {
		return
	}
	s.lastByte.add(j.LastByte.Seconds())
	if j.Outcome == intake.Failed {
		s.failed++
	}
	if times, ok := j.Stretch(); ok {
		s.stretch.add(times)
		s.slowdown += 1 - 1/times
	}
}

// window keeps what ended in the last stretches of equal length, the present one
// among them. A job is counted in the shortest window alone: a stretch that is over
// is added to one of the next longer window.
type window struct {
	width           time.Duration
	slots           []slot
	latest          int64   // the number of the latest stretch; it was not added to the longer window yet
	shorter, longer *window // nil where there is none
}

func newWindow(width time.Duration, slots int) window {
	return window{width: width, slots: make([]slot, slots)}
}

// before makes longer the next longer window.
func (w *window) before(longer *window) { w.longer, longer.shorter = longer, w }

// covered is how much time the stretches at an instant are of.
func (w *window) covered(at time.Duration) time.Duration {
	return min(at, w.length()-w.width+at%w.width)
}

// length is the time that a window covers at most.
func (w *window) length() time.Duration { return w.width * time.Duration(len(w.slots)) }

// add counts a job that ended at an instant, told since the machine's start.
func (w *window) add(at time.Duration, j *Job) { w.stretch(at).add(j) }

// stretch is the one at an instant, or the latest if that is later.
func (w *window) stretch(at time.Duration) *slot {
	number := max(int64(at/w.width), w.latest)
	s := w.slot(number)
	if number > w.latest {
		if w.longer != nil {
			w.longer.stretch(time.Duration(w.latest) * w.width).merge(w.slot(w.latest))
		}
		w.latest = number
		*s = slot{number: number}
	}
	return s
}

func (w *window) slot(number int64) *slot { return &w.slots[number%int64(len(w.slots))] }

// each calls do for all that the window covers at an instant.
func (w *window) each(at time.Duration, do func(*slot)) {
	present := int64(at / w.width)
	covers := func(number int64) bool { return number > present-int64(len(w.slots)) && number <= present }
	for i := range w.slots {
		if s := &w.slots[i]; covers(s.number) {
			do(s)
		}
	}
	for other := w.shorter; other != nil; other = other.shorter {
		if began := time.Duration(other.latest) * other.width; covers(int64(began / w.width)) {
			do(other.slot(other.latest))
		}
	}
}

// count adds what another slot has counted, without its times.
func (s *slot) count(other *slot) {
	for c := range s.counted {
		s.counted[c] += other.counted[c]
	}
	for o := range s.lost {
		s.lost[o] += other.lost[o]
	}
	s.failed += other.failed
}

// merge adds all that another slot has.
func (s *slot) merge(other *slot) {
	s.count(other)
	s.firstByte.merge(&other.firstByte)
	s.lastByte.merge(&other.lastByte)
	s.stretch.merge(&other.stretch)
	s.slowdown += other.slowdown
}

// jobs is how many ended.
func (s *slot) jobs() (n uint64) {
	for _, of := range s.counted {
		n += of
	}
	return n
}

// figures are those of some windows together.
func figures(at time.Duration, windows ...*window) Figures {
	var all slot
	for _, w := range windows {
		w.each(at, all.merge)
	}
	f := Figures{
		Jobs: all.jobs(), Complete: all.counted[intake.Complete], Partial: all.counted[intake.Partial], Absent: all.counted[intake.Absent],
		Failed:    all.failed,
		FirstByte: all.firstByte.quantiles(), LastByte: all.lastByte.quantiles(), Stretch: all.stretch.quantiles(),
	}
	for o, n := range all.lost {
		if n > 0 {
			if f.Lost == nil {
				f.Lost = map[string]uint64{}
			}
			f.Lost[intake.Outcome(o).String()] = n
		}
	}
	if n := f.Stretch.Count; n > 0 {
		f.Slowdown = all.slowdown / float64(n)
	}
	return f
}

// Imbalance says how evenly the jobs lie on the upstreams that take new ones: the mean
// distance of an upstream's jobs for each core from the mean of all, over that mean. It
// is 0 for perfect balance, and 2(1-1/n) if one of n upstreams has all.
func Imbalance(states []pool.State) float64 {
	var loads []float64
	sum := 0.0
	for i := range states {
		if s := &states[i]; !s.Draining {
			load := s.Jobs / float64(max(s.Cores, 1))
			loads = append(loads, load)
			sum += load
		}
	}
	if sum <= 0 {
		return 0
	}
	mean, distance := sum/float64(len(loads)), 0.0
	for _, load := range loads {
		distance += math.Abs(load - mean)
	}
	return distance / sum
}
